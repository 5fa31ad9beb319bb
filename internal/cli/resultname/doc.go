// Package resultname gives restored images readable file names, and links them under these names in the folder restored of an
// output.
//
// A name has the row's name, the task and the settings that vary among the results. No name is one
// that Windows reserves, and two results never share a name, also on a file system that ignores case.
package resultname
