// Package repository holds the tests by which the repository checks itself: that packages,
// files and names keep to the rules of CONTRIBUTING.md, that generated code and go.mod are
// current, and that README, change log and examples say what the program does.
//
// It has no code but tests. They look at the files that Git tracks, so that work in progress
// beside them does not matter.
package repository
