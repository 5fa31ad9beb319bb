package testbed

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
)

// TestAttackBucketVersions runs a campaign in a bucket with versions and retention, deletes it with its results, and collects garbage. What
// people and programs read is gone, and the bucket still has the former versions.
func TestAttackBucketVersions(t *testing.T) {
	onlyBy(t, "make attacks", "DDIFF_ATTACKS")
	c := startCluster(t, Options{})
	server := c.S3.Server
	server.Kill()
	server.args = slices.Insert(server.args, len(server.args)-1, "--versioning-dir", t.TempDir())
	must(t, server.Start())
	must(t, c.S3.Ready(t.Context()))
	client, err := minio.New(c.S3.Address, &minio.Options{
		Creds: credentials.NewStaticV4(c.S3.Admin.Access, c.S3.Admin.Secret, ""), Region: "us-east-1", BucketLookup: minio.BucketLookupPath,
	})
	must(t, err)
	must(t, client.EnableVersioning(t.Context(), Bucket))
	must(t, client.SetObjectLockConfig(t.Context(), Bucket, nil, nil, nil))
	coordinator(t, c)
	simulated(t, c, 20*time.Millisecond)
	const items = 20
	id := submit(t, c, listFile(t, "versions", items), "--canary", "0")
	wantFinished(t, c, id, items)
	count := func(o minio.ListObjectsOptions) (n int) {
		t.Helper()
		o.Prefix, o.Recursive = id+"/items/", true
		for object := range client.ListObjects(t.Context(), Bucket, o) {
			must(t, object.Err)
			if strings.HasSuffix(object.Key, "result.json") && !object.IsDeleteMarker {
				n++
			}
		}
		return n
	}
	// The first result is retained: a deletion of its versions is refused, that of its name is not.
	mode, until := minio.Governance, time.Now().Add(time.Hour)
	found, err := filepath.Glob(filepath.Join(c.Results(id), "items", "*", "result.json"))
	must(t, err)
	key, err := filepath.Rel(filepath.Join(c.S3.Root, Bucket), found[0])
	must(t, err)
	must(t, client.PutObjectRetention(t.Context(), Bucket, key, minio.PutObjectRetentionOptions{Mode: &mode, RetainUntilDate: &until}))
	wantCode(t, ask(t, c, "delete", id, "--results", "--yes"), 0)
	wantCode(t, ask(t, c, "gc", "--store", c.Store(), "--yes"), 0)
	if n := count(minio.ListObjectsOptions{}); n != 0 {
		t.Errorf("%d results can be read after their deletion", n)
	}
	if n := count(minio.ListObjectsOptions{WithVersions: true}); n != items {
		t.Errorf("the bucket has versions of %d results, want %d", n, items)
	}
	if e := ask(t, c, "status", id); e.code != 2 || !strings.Contains(e.stderr, "unknown campaign") {
		t.Errorf("status of the deleted campaign: %v", e)
	}
	again := submit(t, c, listFile(t, "versions", items), "--canary", "0")
	wantFinished(t, c, again, items)
}
