"""One seed of a scenario: workload, script, healing, verdict, and the row that it leaves."""
