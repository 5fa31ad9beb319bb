package charttest

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"sync"
	"syscall"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
)

// startWithin limits the start of etcd and of the API server.
const startWithin = 3 * time.Minute

// apiServer is a Kubernetes API server with its etcd, both of them processes of their own.
type apiServer struct {
	config   *rest.Config
	token    string
	dynamic  dynamic.Interface
	mapper   meta.ResettableRESTMapper
	warnings *warnings
}

// warnings collects the warnings of the server.
type warnings struct {
	mu  sync.Mutex
	all []string
}

// HandleWarningHeader is called for each warning.
func (w *warnings) HandleWarningHeader(_ int, _, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.all = append(w.all, text)
}

// take returns the warnings since the last call.
func (w *warnings) take() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := w.all
	w.all = nil
	return all
}

// kubernetesVersion is the version that apiserver/go.mod pins.
func kubernetesVersion(t *testing.T) string {
	t.Helper()
	data, err := os.ReadFile("apiserver/go.mod")
	must(t, err)
	found := regexp.MustCompile(`(?m)^\s*(?:require )?k8s\.io/kubernetes (v\S+)`).FindSubmatch(data)
	if found == nil {
		t.Fatal("apiserver/go.mod does not require k8s.io/kubernetes")
	}
	return string(found[1])
}

// startServer starts etcd and the API server, which end with the test.
func startServer(t *testing.T) *apiServer {
	t.Helper()
	programs := filepath.Join("..", "..", "bin", "kube-"+kubernetesVersion(t))
	if _, err := os.Stat(filepath.Join(programs, "kube-apiserver")); err != nil {
		t.Fatalf("no API server: %v; `make chart-test` builds it", err)
	}
	dir := t.TempDir()
	etcd, secure := freeAddress(t), freeAddress(t)
	start(t, dir, filepath.Join(programs, "etcd"), "--data-dir="+filepath.Join(dir, "etcd"), "--unsafe-no-fsync", "--log-level=warn",
		"--listen-client-urls=http://"+etcd, "--advertise-client-urls=http://"+etcd, "--listen-peer-urls=http://"+freeAddress(t))

	secret := make([]byte, 16)
	if _, err := rand.Read(secret); err != nil {
		t.Fatal(err)
	}
	s := &apiServer{token: hex.EncodeToString(secret), warnings: &warnings{}}
	tokens, key := filepath.Join(dir, "tokens.csv"), filepath.Join(dir, "accounts.pem")
	must(t, os.WriteFile(tokens, []byte(s.token+",tester,tester,system:masters\n"), 0o600))
	writeKey(t, key)
	_, port, err := net.SplitHostPort(secure)
	must(t, err)
	start(t, dir, filepath.Join(programs, "kube-apiserver"), "--etcd-servers=http://"+etcd, "--bind-address=127.0.0.1", "--secure-port="+port,
		"--cert-dir="+filepath.Join(dir, "certificates"), "--token-auth-file="+tokens, "--authorization-mode=RBAC",
		"--service-cluster-ip-range=10.96.0.0/24", "--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file="+key, "--service-account-signing-key-file="+key,
		// Its controller does not run, so no namespace has the account `default`.
		"--disable-admission-plugins=ServiceAccount")
	s.config = &rest.Config{
		Host: "https://" + secure, BearerToken: s.token, TLSClientConfig: rest.TLSClientConfig{Insecure: true},
		QPS: -1, WarningHandler: s.warnings,
	}
	s.connect(t)
	return s
}

// connect waits until the server is ready.
func (s *apiServer) connect(t *testing.T) {
	t.Helper()
	client, err := discovery.NewDiscoveryClientForConfig(s.config)
	must(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), startWithin)
	defer cancel()
	waitFor(ctx, t, "the API server", func() error {
		return client.RESTClient().Get().AbsPath("/readyz").Do(ctx).Error()
	})
	s.mapper = restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(client))
	if s.dynamic, err = dynamic.NewForConfig(s.config); err != nil {
		t.Fatal(err)
	}
}

// waitFor calls check until it succeeds or ctx ends.
func waitFor(ctx context.Context, t *testing.T, name string, check func() error) {
	t.Helper()
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		err := check()
		if err == nil {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("wait for %s: %v", name, err)
		case <-tick.C:
		}
	}
}

// start starts a program with its log in dir. The test ends it, and the kernel does if the test is killed.
func start(t *testing.T, dir, path string, arguments ...string) {
	t.Helper()
	log, err := os.Create(filepath.Join(dir, filepath.Base(path)+".log"))
	must(t, err)
	cmd := exec.Command(path, arguments...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	must(t, cmd.Start())
	t.Cleanup(func() {
		cmd.Process.Kill() //nolint:errcheck // it may have ended
		cmd.Wait()         //nolint:errcheck // it was killed
		log.Close()
		if t.Failed() {
			if data, err := os.ReadFile(log.Name()); err == nil {
				t.Logf("end of %s:\n%s", filepath.Base(log.Name()), data[max(0, len(data)-2000):])
			}
		}
	})
}

// freeAddress returns a free port of this machine.
func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	must(t, err)
	defer listener.Close()
	return fmt.Sprint(listener.Addr())
}

// writeKey writes the key that signs the tokens of service accounts.
func writeKey(t *testing.T, file string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	der, err := x509.MarshalECPrivateKey(key)
	must(t, err)
	data := pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der})
	must(t, os.WriteFile(file, data, 0o600))
}
