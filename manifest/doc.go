// Package manifest describes the work of a campaign: the campaign file, the rows of the dataset, and
// their items, each with an identity. It decodes no image. It reads the declarations of operators, methods and priors ([Catalogue]); callers pass
// in a [Probe] and a [Resolver].
//
// # Campaign
//
// A campaign runs every row of a dataset for every task, with every method, in a number of runs. It is a YAML file,
// described in docs/campaigns.md, parsed strictly ([Load], [Parse]) and validated against the tasks, methods and presets
// of the program ([Spec.Validate]). Only dataset.path and tasks are required. Paths are relative to the file, except
// output, which is relative to the working directory of the process. A path may lead anywhere, also upwards with "..":
// the author of the file runs it.
//
// # Rows
//
// [Rows] streams a local dataset; package dataset also streams buckets, web servers, tar shards and Parquet files, by
// the same rules. A directory or a glob gives one row per image, a .txt list one per line. A CSV list has a header, a
// JSONL list one object per line, with the columns of docs/campaigns.md and paths relative to the list. dataset.columns
// maps other names of columns: columns: {image: file_path, sigma: noise}. An error in one row affects this row only; the
// row is still counted.
//
// # Items
//
// An [Expander] expands a row into items. [item.Item.ID] is the SHA-256 of everything that determines the result, and of
// nothing else: not the campaign, the position, the name, the batch or the worker. Two rows with the same bytes and
// settings are therefore one item, solved once and counted for both. [item.Item.MeasurementKey], [item.Item.OperatorKey] and
// [item.Item.RunKey] key the random draws, so that all methods use the same measurements and the same noise.
//
// An item passes through these states. Only the three final states are recorded, as the [item.Outcome] of
// its [item.Result]; the others follow from the queue, and their loss costs only time.
//
//	row ──cannot be expanded──────────────────────────────► failed
//	 │
//	 ▼                 lease lost, transient error
//	pending ◄─────────────────────────────┐
//	 │                                    │
//	 └──lease──► leased ──────────────────┤
//	               ├── restored, written ────────────────► done
//	               ├── cannot be restored ───────────────► failed
//	               └── last attempt used up ─────────────► dead
//
// Every manifest entry ends in exactly one final state: done + failed + dead = manifest. The entries
// of an unreadable row are counted like all others ([ItemsPerRow], [Expander.Expand]).
package manifest
