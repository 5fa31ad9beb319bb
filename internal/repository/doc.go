// Package repository tests the repository itself: packages, files and names follow CONTRIBUTING.md,
// generated code and go.mod are current, and documents, change log and examples match the program.
//
// The tests read the files that Git tracks and ignore untracked work in progress.
package repository
