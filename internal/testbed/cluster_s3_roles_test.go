package testbed

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
)

// policy is a policy of docs/security. On servers with bucket policies only, its statements become
// parts of these, with the user as principal.
type policy struct {
	Version   string
	Statement []statement
}

type statement struct {
	Sid       string
	Effect    string
	Principal any `json:",omitempty"`
	Action    any
	Resource  any
}

// ownUsers is the number of processes of a role with an S3 user of their own, such as worker-1. Further processes share
// the user of the role.
const ownUsers = 4

// Roles creates users for coordinators and workers with the permissions of docs/security in both buckets, and returns the
// keys by role or process name. People get the keys of the admin.
func (s *S3) Roles(ctx context.Context) (map[Role]Keys, error) {
	root, err := ModuleRoot(ctx)
	if err != nil {
		return nil, err
	}
	keys := map[Role]Keys{RoleUser: s.Admin}
	buckets := map[string]*policy{}
	for _, role := range []Role{RoleCoordinator, RoleWorker} {
		users := []string{string(role)}
		for i := range ownUsers {
			users = append(users, fmt.Sprintf("%s-%d", role, i+1))
		}
		for _, user := range users {
			k := Keys{Access: user, Secret: newKeys().Secret}
			if err := s.addUser(ctx, k); err != nil {
				return nil, err
			}
			keys[Role(user)] = k
		}
		data, err := os.ReadFile(filepath.Join(root, "docs", "security", "s3-"+string(role)+".json"))
		if err != nil {
			return nil, fmt.Errorf("read policy: %w", err)
		}
		text := strings.NewReplacer("RESULTS", Bucket, "DATASET", Dataset).Replace(string(data))
		var p policy
		if err := json.Unmarshal([]byte(text), &p); err != nil {
			return nil, fmt.Errorf("read policy of %s: %w", role, err)
		}
		for _, st := range p.Statement {
			for _, bucket := range []string{Bucket, Dataset} {
				if part := st.of(bucket, users); part != nil {
					if buckets[bucket] == nil {
						buckets[bucket] = &policy{Version: p.Version}
					}
					buckets[bucket].Statement = append(buckets[bucket].Statement, *part)
				}
			}
		}
	}
	for bucket, p := range buckets {
		if err := s.setPolicy(ctx, bucket, p); err != nil {
			return nil, err
		}
	}
	return keys, nil
}

// of returns the part of a statement that applies to a bucket, or nil.
func (st statement) of(bucket string, users []string) *statement {
	var resources []string
	switch r := st.Resource.(type) {
	case string:
		resources = []string{r}
	case []any:
		for _, one := range r {
			resources = append(resources, fmt.Sprint(one))
		}
	}
	part := st
	part.Principal = map[string]any{"AWS": users}
	part.Sid += strings.ToUpper(users[0][:1]) + users[0][1:]
	var own []string
	for _, r := range resources {
		name := strings.TrimPrefix(r, "arn:aws:s3:::")
		if name == bucket || strings.HasPrefix(name, bucket+"/") {
			own = append(own, r)
		}
	}
	part.Resource = own
	if len(own) == 0 {
		return nil
	}
	return &part
}

// addUser creates a user without permissions.
func (s *S3) addUser(ctx context.Context, k Keys) error {
	cmd := exec.CommandContext(ctx, s.Server.path, "admin", "--access", s.Admin.Access, "--secret", s.Admin.Secret,
		"--endpoint-url", s.endpoint(s.Address), "create-user", "--access", k.Access, "--secret", k.Secret, "--role", "user")
	if s.Authority != nil {
		cmd.Env = append(os.Environ(), "SSL_CERT_FILE="+s.Authority.File)
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("create S3 user %s: %w: %s", k.Access, err, out)
	}
	return nil
}

// setPolicy sets the policy of a bucket.
func (s *S3) setPolicy(ctx context.Context, bucket string, p *policy) error {
	transport, err := s.transport()
	if err != nil {
		return fmt.Errorf("set policy of bucket %s: %w", bucket, err)
	}
	defer transport.CloseIdleConnections()
	client, err := minio.New(s.Address, &minio.Options{
		Secure: s.Authority != nil, Transport: transport,
		Creds: credentials.NewStaticV4(s.Admin.Access, s.Admin.Secret, ""), Region: "us-east-1", BucketLookup: minio.BucketLookupPath,
	})
	if err != nil {
		return fmt.Errorf("set policy of bucket %s: %w", bucket, err)
	}
	data, err := json.Marshal(p)
	if err != nil {
		return fmt.Errorf("set policy of bucket %s: %w", bucket, err)
	}
	if err := client.SetBucketPolicy(ctx, bucket, string(data)); err != nil {
		return fmt.Errorf("set policy of bucket %s: %w", bucket, err)
	}
	return nil
}
