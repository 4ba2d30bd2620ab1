"""Forms that create, change and delete records; all follow from the declarations of the API's types."""
