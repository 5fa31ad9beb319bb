// Package storage keeps the bytes of a campaign: measurements, restored images, results
// and reports, each one whole object under a slash-separated key.
//
// Two stores live here. [Dir] keeps one file per key below a directory, so that a person
// can open the output with any program. [Memory] keeps everything in the process. Both
// pass the suite in package storagetest, which states the contract that every further
// store has to meet:
//
//   - an object appears whole or not at all, also when the process is killed or the
//     disk is full;
//   - Put replaces, Create only creates: of any number of racing creators exactly one
//     wins, and the others get [ErrExists];
//   - List yields the keys in byte order and never a half-written object.
//
// [Store] is the union of the methods, for wrappers such as [Traced]. A consumer declares
// the one to three methods that it calls.
//
// The first key elements ".tmp" and ".ddiff" are reserved in every store: a Dir writes its
// temporary files into the former, and the latter holds what belongs to the running
// process, such as the file of a [Lock].
package storage
