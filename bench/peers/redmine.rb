# Fill a copy of Redmine's database, and print the key of its API: rails runner redmine.rb COUNT
count = ARGV.last.to_i
Setting.rest_api_enabled = 1
Setting.timelog_required_fields = [] if Setting.respond_to?(:timelog_required_fields=)
admin = User.find_by(login: "admin")
admin.update_columns(must_change_passwd: false)
project = Project.new(name: "Peer", identifier: "peer")
project.trackers = Tracker.all
project.enabled_module_names = %w[issue_tracking time_tracking]
project.save!
activity = TimeEntryActivity.first
shared = {project: project, author: admin, tracker: Tracker.first, status: IssueStatus.first, priority: IssuePriority.first}
count.times do |number|
  issue = Issue.create!(subject: "Task #{number}", **shared)
  TimeEntry.create!(
    project: project, issue: issue, user: admin, author: admin, activity: activity, hours: 1.5, spent_on: Date.new(2026, 1 + number % 12, 1 + number % 28)
  )
end
puts({key: admin.api_key, project: project.id, activity: activity.id, first: Issue.minimum(:id)}.to_json)
