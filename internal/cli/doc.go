// Package cli has what the commands of several groups share: exit codes and the errors behind them, text for terminals, the
// flags of the device, the datasets, the process and the stages of a worker, and the opening of priors, outputs and stores.
//
// It imports no package of cmd/ddiff and none below internal/cli. An error of a flag or an argument is made with [Usage]; every
// other error of a command wraps a sentinel that the table of exit codes lists, or ends the command with the code of an unexpected error.
package cli
