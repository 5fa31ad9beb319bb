// Package storage stores the bytes of a campaign: measurements, restored images, results and reports. Each object
// is stored whole under a slash-separated key.
//
// The package has two stores, which [Open] opens by the scheme of an address. [Dir] stores one file per key below a
// directory, readable with any program. [S3] stores one object per key in a bucket of any server with conditional
// writes. Both pass the conformance suite in contract_test.go, which checks their contract:
//
//   - An object appears whole or not at all, even when the process is killed or the disk is full.
//   - Put replaces an object. Create only creates: of any number of racing creators exactly one succeeds, and the
//     others get [ErrExists].
//   - List yields the keys in byte order and never a partial object.
//
// [Store] is the union of the methods, for the wrappers [Traced] and [Prefixed]. A consumer declares the one to three
// methods that it calls.
//
// The first key elements ".tmp" and ".ddiff" are reserved in every store. A Dir writes its temporary files below
// ".tmp"; ".ddiff" holds the state of the running process, such as the file of a [Lock].
//
// [Cache] is a cache of immutable values on the local disk, independent of stores.
package storage
