package main_test

import (
	"bytes"
	"encoding/json"
	"net/url"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"ddiff/internal/s3test"
	"ddiff/restore/item"
	"ddiff/storage"
)

// toS3 is the command with a bucket of a real S3 server as its output.
func toS3(t *testing.T, server *s3test.Server, bucket, secret string, args ...string) (*exec.Cmd, string) {
	t.Helper()
	place := "s3://" + bucket + "/campaigns/one?path_style=true&endpoint=" + url.QueryEscape(server.Endpoint)
	cmd := command(t, append(args, "--out", place)...)
	cmd.Env = append(cmd.Env, "AWS_ACCESS_KEY_ID="+server.AccessKey, "AWS_SECRET_ACCESS_KEY="+secret)
	return cmd, place
}

func TestRunToS3(t *testing.T) {
	skipLong(t)
	t.Parallel()
	server := s3test.Start(t, s3test.Options{})
	bucket := server.Bucket(t)
	args := small("--images", photographs(t, "chelsea"), "--task", "hdr", "--steps", "10")
	for round, want := range []string{"1 to do", "0 to do"} {
		cmd, place := toS3(t, server, bucket, server.SecretKey, args...)
		e := end(t, cmd)
		wantCode(t, e, 0)
		if !strings.Contains(e.stderr, want) || !strings.Contains(e.stdout, "done=1 failed=0 dead=0 out="+place) {
			t.Fatalf("round %d: want %q\n%v", round+1, want, e)
		}
		if strings.Contains(e.stdout+e.stderr, server.SecretKey) {
			t.Error("the secret key is in the output")
		}
	}
	cfg := server.Config(bucket)
	cfg.Prefix = "campaigns/one"
	store, err := storage.OpenS3(t.Context(), cfg)
	must(t, err)
	defer store.Close()
	found := map[string]bool{}
	for info, err := range store.List(t.Context(), "") {
		must(t, err)
		found[filepath.Base(info.Key)] = true
		data, err := store.Get(t.Context(), info.Key)
		must(t, err)
		if bytes.Contains(data, []byte(server.SecretKey)) || bytes.Contains(data, []byte(server.AccessKey)) {
			t.Errorf("%s has a key of the store", info.Key)
		}
		if filepath.Base(info.Key) != item.FileResult {
			continue
		}
		var r item.Result
		if err := json.Unmarshal(data, &r); err != nil || r.Outcome != item.OutcomeDone {
			t.Errorf("result %q, error %v", r.Outcome, err)
		}
	}
	for _, name := range []string{"index.html", "results.csv", item.FileRestored, item.FileData, item.FileTrace, item.FileResult} {
		if !found[name] {
			t.Errorf("%s is missing in the bucket: %v", name, found)
		}
	}
}

func TestRunToS3Faults(t *testing.T) {
	t.Parallel()
	server := s3test.Start(t, s3test.Options{})
	bucket := server.Bucket(t)
	args := small("--images", photographs(t, "chelsea"), "--task", "hdr", "--steps", "10")
	for name, c := range map[string]struct{ bucket, secret, want string }{
		"wrong credentials": {bucket, "wrong", "check the keys"},
		"missing bucket":    {"no-such-bucket", server.SecretKey, "bucket"},
	} {
		cmd, _ := toS3(t, server, c.bucket, c.secret, args...)
		e := end(t, cmd)
		wantCode(t, e, 6)
		wantMessage(t, e, c.want)
		if strings.Count(strings.TrimSpace(e.stderr), "\n") != 0 {
			t.Errorf("%s: the message is more than one line\n%v", name, e)
		}
	}
}

func TestRunToUnsupportedScheme(t *testing.T) {
	t.Parallel()
	e := restore(t, "--images", photographs(t, "chelsea"), "--task", "hdr", "--steps", "10", "--out", "gs://bucket/out")
	wantCode(t, e, 2)
	wantMessage(t, e, `scheme "gs://" is not supported; use a directory, file:// or s3://`)
}
