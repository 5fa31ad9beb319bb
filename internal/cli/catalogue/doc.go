// Package catalogue describes tasks and methods as ddiff tasks --json, ddiff methods --json and the HTTP API give them.
package catalogue
