// Package dataset reads datasets from where they are: this machine, S3, web servers, tar
// shards, Parquet files. [Sources.Rows] lists what is to be restored, [Sources.Get] reads the
// files that rows name. What a row is, package manifest says.
//
// # Sources
//
// A campaign's dataset.path is one of
//
//	photos, photos/*.png, cat.png           a directory, a glob, one image of this machine
//	dir:PATH                                the same, whatever the path looks like
//	list.csv, list.jsonl, list.txt          a list; .txt has one image per line
//	list.parquet                            a list, or images in the file itself
//	shards/{000..031}.tar                   WebDataset shards
//	s3://bucket/photos                      all images below a prefix
//	s3://bucket/list.csv                    any list or shard in a bucket
//	https://example.org/list.parquet        any list or shard on a web server
//
// Braces stand for several paths, as in a shell, before any kind. What a list calls a file is
// a path that starts from the list, or an address of any kind, see [Address]. A list that is
// not on this machine is not trusted: it names nothing on this machine, nothing above itself,
// and no server that is sent our keys.
//
// In lists, [manifest.Dataset].Columns says which column is which. Parquet columns are named
// by their path with dots; a group of "bytes" and "path", or a column of bytes, holds the files
// themselves. A list may state the digest and size of its images (sha256, width, height),
// which saves reading each of them before the first is restored.
//
// A tar file must not be packed. Its headers are walked once, and the index is kept in the
// cache; an image is one ranged read afterwards. Members that follow each other with one name
// up to the first dot are a sample: NAME.png (or another image) is the image, NAME.npy the
// measurement, NAME.mask.png and NAME.kernel.npy what they say. Columns gives other endings, as
// in {image: input.jpg, mask: seg.png}. Sparse and empty members are rows that fail.
//
// # Memory
//
// Everything is read as it is asked for: a list in blocks of 1 MiB, a bucket in pages of 1000
// keys, a tar file in pieces of 16,384 members, a Parquet file by the pages of the columns that
// rows have. Memory does not grow with the rows.
//
// # Safety
//
// See [Config] for what can be allowed. By default no private address is connected to (checked
// at the moment of connecting, so that neither a redirect nor a DNS answer gets around it),
// redirects keep their scheme and number at most five, http is refused, and no file above
// 256 MiB is read. Answers that a web server packs are refused; pages of Parquet files are
// unpacked once without keeping anything, to see that they are no larger than they say. Errors
// and logs show web addresses without their query, which may be a signature. Items do carry
// it: whoever may read the queue may read what they point to.
package dataset
