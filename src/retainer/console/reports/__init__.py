"""The business reports of the console: figures of the API's reports as charts and tables, next to a year before."""
