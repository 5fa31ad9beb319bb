// Package archive moves ended campaigns from the board and the streams to an archive in the store, and back.
//
// An archive is one object with the record, the last status, the failures and the dead letters of a campaign. Package index
// lists the archives. The [Archiver] of the leader also answers the requests with which commands without access to the store
// reach it: [Recall], [Archive], [List] and [Logs]. A new request is a verb of manifest.Request, a case of Archiver.execute,
// and a function that sends it.
package archive
