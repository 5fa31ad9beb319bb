// Package storage keeps the bytes of a campaign: measurements, restored images, results
// and reports, each one whole object under a slash-separated key.
//
// Three stores live here. [Dir] keeps one file per key below a directory, so that a person
// can open the output with any program. [S3] keeps one object per key in a bucket of any
// server with conditional writes. [Memory] keeps everything in the process. All pass the
// suite in package storagetest, which states their contract:
//
//   - an object appears whole or not at all, also when the process is killed or the
//     disk is full;
//   - Put replaces, Create only creates: of any number of racing creators exactly one
//     wins, and the others get [ErrExists];
//   - List yields the keys in byte order and never a half-written object.
//
// [Store] is the union of the methods, for wrappers: [Traced], [Cached], [Retrying] and
// [Limited], in this order from the outside. A consumer declares the one to three methods
// that it calls.
//
// The first key elements ".tmp" and ".ddiff" are reserved in every store: a Dir writes its
// temporary files into the former, and the latter holds what belongs to the running
// process, such as the file of a [Lock].
package storage
