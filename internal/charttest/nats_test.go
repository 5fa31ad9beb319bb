package charttest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io/fs"
	"math/big"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// natsChart returns the file of the NATS chart: that of `helm dependency build`, or DDIFF_NATS_CHART.
func natsChart(t *testing.T) string {
	t.Helper()
	file := os.Getenv("DDIFF_NATS_CHART")
	if file == "" {
		file = filepath.Join(chartDir, "charts", natsArchive)
	}
	if _, err := os.Stat(file); errors.Is(err, fs.ErrNotExist) {
		t.Skipf("no chart of NATS at %s; run `helm dependency build charts/ddiff`, or name it in DDIFF_NATS_CHART", file)
	}
	return file
}

// testNATS applies the objects of the NATS servers that the chart starts.
func testNATS(t *testing.T, s *apiServer) {
	dependency, err := loader.Load(natsChart(t))
	must(t, err)
	for _, name := range []string{"kind", "bare-metal"} {
		t.Run(name, func(t *testing.T) {
			c := loadChart(t)
			if got, want := dependency.Metadata.Version, c.Metadata.Dependencies[0].Version; got != want {
				t.Fatalf("the chart of NATS has version %s, want %s", got, want)
			}
			c.AddDependency(dependency)
			files, err := render(c, example(t, name))
			must(t, err)
			all, err := objects(files)
			must(t, err)
			space := "nats-" + name
			must(t, s.namespace(t.Context(), space))
			for _, object := range all {
				object.SetNamespace(space)
				if err := s.accept(t, object); err != nil {
					t.Error(err)
				}
			}
			checkServers(t, all, map[string]int{"kind": 0, "bare-metal": 3}[name])
		})
	}
}

// checkServers parses the configuration as a server would in its pod, and checks what docs/security promises.
func checkServers(t *testing.T, all []*unstructured.Unstructured, routes int) {
	var set appsv1.StatefulSet
	must(t, runtime.DefaultUnstructuredConverter.FromUnstructured(find(t, all, "StatefulSet", "-nats").Object, &set))
	if routes > 0 && int(*set.Spec.Replicas) != routes {
		t.Errorf("%d servers, want %d", *set.Spec.Replicas, routes)
	}
	container := set.Spec.Template.Spec.Containers[0]
	root := t.TempDir()
	for _, volume := range set.Spec.Template.Spec.Volumes {
		if volume.ConfigMap == nil {
			continue
		}
		mount := slices.IndexFunc(container.VolumeMounts, func(m corev1.VolumeMount) bool { return m.Name == volume.Name })
		if mount < 0 {
			t.Fatalf("the server does not mount %s", volume.Name)
		}
		files, _, err := unstructured.NestedStringMap(find(t, all, "ConfigMap", volume.ConfigMap.Name).Object, "data")
		must(t, err)
		dir := filepath.Join(root, container.VolumeMounts[mount].MountPath)
		must(t, os.MkdirAll(dir, 0o755))
		for name, text := range files {
			// Certificates are not part of the chart.
			text = strings.ReplaceAll(text, "/etc/nats-", filepath.Join(root, "etc", "nats-"))
			must(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
		}
	}
	for _, variable := range container.Env {
		t.Setenv(variable.Name, "value-of-"+strings.ToLower(variable.Name))
	}
	writeCertificates(t, filepath.Join(root, "etc"))
	options, err := server.ProcessConfigFile(filepath.Join(root, "etc", "nats-config", "nats.conf"))
	must(t, err)
	if !options.JetStream || !options.SyncAlways {
		t.Errorf("JetStream %v, sync always %v", options.JetStream, options.SyncAlways)
	}
	if len(options.Routes) != routes {
		t.Errorf("%d routes, want %d", len(options.Routes), routes)
	}
	users := map[string]string{}
	for _, user := range options.Users {
		users[user.Username] = user.Password
		if user.Permissions == nil {
			t.Errorf("user %s has every right", user.Username)
		}
	}
	for _, role := range []string{"coordinator", "worker"} {
		if users[role] != "value-of-ddiff_"+role+"_password" {
			t.Errorf("the password of %s is %q", role, users[role])
		}
	}
	if len(users) != 2 {
		t.Errorf("users %v", users)
	}
	if routes > 0 && (options.TLSConfig == nil || options.Cluster.TLSConfig == nil) {
		t.Error("no TLS towards clients or between servers")
	}
}

// writeCertificates writes a certificate to the folders that the servers of bare-metal mount.
func writeCertificates(t *testing.T, dir string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), IsCA: true, BasicConstraintsValid: true, NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	must(t, err)
	private, err := x509.MarshalECPrivateKey(key)
	must(t, err)
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	for file, data := range map[string][]byte{
		"nats-ca-cert/ca.crt":     certificate,
		"nats-certs/nats/tls.crt": certificate, "nats-certs/cluster/tls.crt": certificate,
		"nats-certs/nats/tls.key":    pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: private}),
		"nats-certs/cluster/tls.key": pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: private}),
	} {
		path := filepath.Join(dir, filepath.FromSlash(file))
		must(t, os.MkdirAll(filepath.Dir(path), 0o755))
		must(t, os.WriteFile(path, data, 0o600))
	}
}
