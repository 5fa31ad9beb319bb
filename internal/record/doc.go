// Package record has the records and messages that coordinators, workers and the HTTP API share: campaigns and their states, heartbeats of workers
// and coordinators, the record of the cluster, preflights, and the logs of attempts. They are JSON on the board, in the queue and in the store. A
// program refuses a record of a higher [Schema].
package record
