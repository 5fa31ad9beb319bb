// Package manifest describes the work of a campaign: the campaign file, the rows of the dataset, and
// their items, each with an identity. It decodes no image, knows no operator and imports no sibling
// package; callers pass in a [Vocabulary], a [Probe] and a [Resolver].
//
// # Campaign
//
// A campaign runs every row of a dataset for every task, with every method, in a number of runs. It is
// a YAML file, parsed strictly ([Load], [Parse]) and validated against the tasks, methods and presets
// of the program ([Spec.Validate]):
//
//	name: night photos
//	dataset:
//	  path: photos              # directory, glob, list or one image; s3:// and https:// too
//	  size: 256                 # working size in pixels
//	  fit: center_crop          # or resize, pad
//	  recursive: true
//	tasks:
//	  - gaussian_deblur         # a plain name, or a mapping:
//	  - name: super_resolution
//	    params: {factor: 4}
//	    sigma: 0.02
//	    steps: 100
//	    solver: {b: 0.5}
//	methods: [ddiff]
//	preset: natural
//	prior: bundled              # or the path of an ONNX file
//	sigma: 0.05                 # noise, in units of the measurement
//	seed: 0
//	runs: 1
//	select: first               # or mean, min_residual, best_psnr
//	output: out
//
// Only dataset.path and tasks are required. Paths are relative to the file, except output, which is
// relative to the working directory of the process. A path may lead anywhere, also upwards with "..":
// the author of the file runs it.
//
// # Rows
//
// [Rows] streams a local dataset; package dataset also streams buckets, web servers, tar shards and
// Parquet files, by the same rules. A directory or a glob gives one row per image, a .txt list one per
// line. A CSV list has a header, a JSONL list one object per line, with the columns
//
//	image        ground truth; the measurement is simulated from it
//	measurement  a stored y (.npy); at least one of image and measurement is given
//	name         the row's name for people
//	task         only this task
//	sigma, seed  replace the campaign's
//	mask, kernel files that replace the draws of the operator
//	sha256       the digest of the image
//	width, height size of the image in pixels; with sha256 the image is not read for its items
//	param.NAME   a parameter of the operator
//
// and paths relative to the list. dataset.columns maps other names of columns: columns: {image:
// file_path, sigma: noise}. An error in one row affects this row only; the row is still counted.
//
// # Items
//
// An [Expander] expands a row into items. [Item.ID] is the SHA-256 of everything that determines the
// result, and of nothing else: not the campaign, the position, the name, the batch or the worker. Two
// rows with the same bytes and settings are therefore one item, solved once and counted for both.
// [Item.MeasurementKey], [Item.OperatorKey] and [Item.RunKey] key the random draws, so that all
// methods use the same measurements and the same noise.
//
// An item passes through these states. Only the three final states are recorded, as the [Outcome] of
// its [Result]; the others follow from the queue, and their loss costs only time.
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
// of an unreadable row are counted like all others ([ItemsPerRow], [FailedItems]).
package manifest
