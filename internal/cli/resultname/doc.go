// Package resultname gives restored images readable file names, and links them under these names in the folder restored of an
// output.
//
// A name has the row's name, the task and the settings that vary among the results. Two
// results never share a name, also on a file system that ignores case.
package resultname
