// Package manifest says what is to be restored: the campaign file, the dataset's rows, and
// the items that they make, each with an identity. It decodes no image, knows no operator
// and imports no sibling package; what it needs from them is handed in ([Vocabulary],
// [Probe], [Resolver]).
//
// # Campaign
//
// A campaign is one question asked of one dataset: every row, for every task, by every
// method, as often as runs says. It is a YAML file, read strictly ([Load], [Parse]) and
// checked against what the program can run ([Spec.Validate]):
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
// Only dataset.path and tasks are required. Paths are relative to the file, except output,
// which is relative to the working directory of the process. A path may lead anywhere, also
// upwards with "..": the file belongs to the person who runs it.
//
// # Rows
//
// [Rows] streams a dataset of this machine; package dataset streams those of buckets, web
// servers, tar shards and Parquet files too, by the same rules. A directory or a glob gives one
// row per image, a .txt list one per line. A CSV list has a header, a JSONL list one object per
// line, with the columns
//
//	image        ground truth; the measurement is simulated from it
//	measurement  a stored y (.npy); at least one of image and measurement is given
//	name         the row's name for people
//	task         only this task
//	sigma, seed  in place of the campaign's
//	mask, kernel files in place of what the operator draws
//	sha256       the digest of the image
//	width, height the image's size in pixels; with sha256 it need not be read to be counted
//	param.NAME   a parameter of the operator
//
// and paths that are relative to the list. dataset.columns says which column is which in lists
// that have other names: columns: {image: file_path, sigma: noise}. What is wrong with one row
// is that row's problem alone, and the row is still counted.
//
// # Items
//
// An [Expander] makes a row's items. An item's [Item.ID] is the SHA-256 of everything that
// determines its result, and of nothing else: not the campaign, the position, the name, the
// batch or the worker. Two rows with the same bytes and settings are therefore one item,
// solved once and counted for both. [Item.MeasurementKey], [Item.OperatorKey] and
// [Item.RunKey] key the random draws, so that methods are compared on the same measurements
// and the same noise.
//
// An item goes through these states. Only the three final ones are recorded, as the
// [Outcome] of its [Result]; the others follow from the queue, and may be lost at no more
// cost than time.
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
// Every manifest entry ends in exactly one of them: done + failed + dead = manifest. The
// entries of a row that cannot be read are counted like all others ([ItemsPerRow],
// [FailedItems]).
package manifest
