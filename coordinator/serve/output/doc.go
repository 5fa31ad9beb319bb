// Package output is the backend of the page over outputs, directories or buckets, of finished runs and of runs in progress. It reads only.
//
// Each output is one campaign. [New] reads its results; while a page watches, the backend looks for further ones. A run in this process
// reports its progress through [Live] instead.
package output
