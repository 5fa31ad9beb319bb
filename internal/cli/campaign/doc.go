// Package campaign turns the flags and arguments of a command into a campaign: those of ddiff run, and the parts of them that
// ddiff restore, tune, bench and submit have.
//
// [Options.Read] returns a campaign that is valid for the catalogue, with the operator files that it names. The package starts
// nothing and opens no device, except to choose the precision auto of a plan.
package campaign
