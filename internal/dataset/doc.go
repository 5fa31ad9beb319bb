// Package dataset reads datasets from this machine, S3, web servers, tar shards and Parquet files. [Sources.Rows] lists
// the rows, [Sources.Get] reads the files of rows. Package manifest defines a row.
//
// # Sources
//
// The dataset.path of a campaign is one of
//
//	photos, photos/*.png, cat.png           a local directory, glob or image
//	dir:PATH                                a local directory, glob or image without interpretation of the path
//	list.csv, list.jsonl, list.txt          a list; .txt has one image per line
//	list.parquet, data/*.parquet            a list, or images in the file itself
//	shards/{000..031}.tar                   WebDataset shards
//	s3://bucket/photos                      all images below a prefix
//	s3://bucket/list.csv                    any list or shard in a bucket
//	https://example.org/list.parquet        any list or shard on a web server
//
// Braces expand to several paths of any kind, as in a shell. Files in a list are paths relative to the list, or
// addresses, see [Address]. A remote list is not trusted: it must not name local files, parent directories, or servers
// for requests with our keys.
//
// [manifest.Dataset].Columns maps the columns of lists. Parquet columns have names with dots; a group of "bytes" and
// "path", or a column of bytes, contains files. A list may state digest and size of its images (sha256, width, height),
// which saves reading the images in advance.
//
// A tar file must not be compressed. Its headers are read once, and the cache stores the index; each image is then one
// ranged read. Consecutive members with equal names up to the first dot are a sample: NAME.png (or another format) is
// the image, NAME.npy the measurement, NAME.mask.png the mask and NAME.kernel.npy the kernel. Columns sets other
// endings, as in {image: input.jpg, mask: seg.png}. Without them, each picture of a sample that has neither image nor measurement, such as
// 1.1.png and 1.2.png, is a row. Sparse and empty members are failed rows.
//
// # Memory
//
// All sources are streams: a directory by its names, a list in blocks of 1 MiB, a bucket in pages of 1000 keys, a tar file in pieces of 16,384
// members, a Parquet file in pages of the mapped columns. A row takes the hash of its name, some 30 bytes. [Config].CheckImage refuses a
// file by its first bytes, before the rest takes memory.
//
// # Safety
//
// [Config] sets the permissions. A transfer slower than 1 KiB/s over Config.Timeout ends. By default, connections to private addresses are refused (checked on connecting, after
// redirects and DNS answers), redirects keep their scheme and number at most five, http is refused, and files above
// 256 MiB are refused. Compressed answers of web servers are refused. Pages of Parquet files are decompressed once
// without storing the result, to check their claimed size. Errors and logs show web addresses without the query, which
// may be a signature; so do results, see [item.Item.Public]. Items contain the query: readers of the queue can read
// the files of its items. S3 endpoints that addresses name obey the same rules for schemes and networks, unless Config
// names them.
package dataset
