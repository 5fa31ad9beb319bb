package queue_test

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nkeys"

	"ddiff/internal/queue"
)

// wantRefusal checks that Connect fails with a sentinel in one line that contains words, and not the password.
func wantRefusal(t *testing.T, cfg queue.ConnectConfig, want error, words ...string) {
	t.Helper()
	nc, err := queue.Connect(t.Context(), cfg)
	if err == nil {
		nc.Close()
		t.Fatalf("connected, want %v", want)
	}
	mustBe(t, err, want)
	for _, word := range words {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("error %q does not contain %q", err, word)
		}
	}
	if strings.Contains(err.Error(), "hunter2") || strings.Contains(err.Error(), "\n") {
		t.Errorf("error %q contains the password or several lines", err)
	}
}

func TestConnectUnreachable(t *testing.T) {
	t.Parallel()
	port := freePort(t)
	url := fmt.Sprintf("nats://user:hunter2@127.0.0.1:%d", port)
	wantRefusal(t, queue.ConnectConfig{URL: url}, queue.ErrUnreachable, fmt.Sprint("127.0.0.1:", port))

	listener, err := net.Listen("tcp", fmt.Sprint("127.0.0.1:", port))
	must(t, err)
	started := make(chan *server.Server, 1)
	go func() {
		// The server starts after the first attempt has failed.
		if conn, err := listener.Accept(); err == nil {
			conn.Close()
		}
		listener.Close()
		o := &server.Options{Host: "127.0.0.1", Port: port, JetStream: true, StoreDir: t.TempDir(), NoSigs: true, NoLog: true}
		s, err := server.NewServer(o)
		if err == nil {
			s.Start()
		}
		started <- s
	}()
	nc, err := queue.Connect(t.Context(), queue.ConnectConfig{URL: url, Wait: patience})
	defer stopServer(<-started)
	must(t, err)
	nc.Close()

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = queue.Connect(ctx, queue.ConnectConfig{URL: fmt.Sprint("nats://127.0.0.1:", freePort(t)), Wait: time.Hour})
	mustBe(t, err, context.Canceled)
}

// TestConnectPauses: the attempts are half a second apart, and none begins after Wait.
func TestConnectPauses(t *testing.T) {
	t.Parallel()
	for wait, want := range map[time.Duration]time.Duration{
		0: 0, 499 * time.Millisecond: 0, 500 * time.Millisecond: 500 * time.Millisecond, 1200 * time.Millisecond: time.Second,
	} {
		synctest.Test(t, func(t *testing.T) {
			begin := time.Now()
			wantRefusal(t, queue.ConnectConfig{URL: "nats://127.0.0.1:1", Wait: wait}, queue.ErrUnreachable)
			if took := time.Since(begin); took != want {
				t.Errorf("Connect with a wait of %v takes %v, want %v", wait, took, want)
			}
		})
	}
}

func TestConnectSkipsDeadServers(t *testing.T) {
	t.Parallel()
	s := serve(t, jetStream(t))
	dead := fmt.Sprint("nats://127.0.0.1:", freePort(t))
	for _, url := range []string{dead + "," + s.ClientURL(), s.ClientURL() + ", " + dead} {
		nc, err := queue.Connect(t.Context(), queue.ConnectConfig{URL: url})
		must(t, err)
		nc.Close()
	}
	wantRefusal(t, queue.ConnectConfig{URL: dead + "," + dead}, queue.ErrUnreachable)
}

func TestConnectAccess(t *testing.T) {
	t.Parallel()
	seed := filepath.Join(t.TempDir(), "seed")
	pair, err := nkeys.CreateUser()
	must(t, err)
	text, err := pair.Seed()
	must(t, err)
	must(t, os.WriteFile(seed, text, 0o600))
	public, err := pair.PublicKey()
	must(t, err)
	o := jetStream(t)
	o.Users, o.Nkeys = []*server.User{{Username: "user", Password: "right"}}, []*server.NkeyUser{{Nkey: public}}
	s := serve(t, o)
	with := func(user string) string { return strings.Replace(s.ClientURL(), "://", "://"+user+"@", 1) }
	nc, err := queue.Connect(t.Context(), queue.ConnectConfig{URL: with("user:right")})
	must(t, err)
	nc.Close()
	nc, err = queue.Connect(t.Context(), queue.ConnectConfig{URL: s.ClientURL(), NKeySeed: seed})
	must(t, err)
	nc.Close()
	wantRefusal(t, queue.ConnectConfig{URL: with("user:hunter2")}, queue.ErrAccess, "password")
	wantRefusal(t, queue.ConnectConfig{URL: s.ClientURL()}, queue.ErrAccess)
	dead := fmt.Sprint("nats://127.0.0.1:", freePort(t))
	wantRefusal(t, queue.ConnectConfig{URL: with("user:hunter2") + "," + dead, Wait: time.Hour}, queue.ErrAccess)
	for range 4 { // the client tries the servers in random order
		wantRefusal(t, queue.ConnectConfig{URL: with("user:hunter2") + "," + dead}, queue.ErrAccess)
		wantRefusal(t, queue.ConnectConfig{URL: dead + "," + with("user:hunter2")}, queue.ErrAccess)
	}
	other, err := nkeys.CreateUser()
	must(t, err)
	text, err = other.Seed()
	must(t, err)
	must(t, os.WriteFile(seed, text, 0o600))
	wantRefusal(t, queue.ConnectConfig{URL: s.ClientURL(), NKeySeed: seed}, queue.ErrAccess)
}

func TestConnectCertificates(t *testing.T) {
	t.Parallel()
	a, stranger := newAuthority(t), newAuthority(t)
	later, yesterday := time.Now().Add(time.Hour), time.Now().Add(-time.Hour)
	secure := func(end time.Time, clients tls.ClientAuthType) string {
		o := jetStream(t)
		o.TLSConfig, o.TLS, o.TLSTimeout, o.TLSVerify = a.server(t, end, clients), true, 5, clients != tls.NoClientCert
		return strings.Replace(serve(t, o).ClientURL(), "nats://", "tls://", 1)
	}
	good, expired, mutual := secure(later, tls.NoClientCert), secure(yesterday, tls.NoClientCert), secure(later, tls.RequireAndVerifyClientCert)
	cert, key := a.issue(t, "client", later)
	oldCert, oldKey := a.issue(t, "old", yesterday)
	strangeCert, strangeKey := stranger.issue(t, "stranger", later)
	for _, cfg := range []queue.ConnectConfig{
		{URL: good, CAFile: a.file}, {URL: strings.Replace(good, "tls", "nats", 1), CAFile: a.file},
		{URL: mutual, CAFile: a.file, CertFile: cert, KeyFile: key},
	} {
		nc, err := queue.Connect(t.Context(), cfg)
		must(t, err)
		nc.Close()
	}
	wantRefusal(t, queue.ConnectConfig{URL: expired, CAFile: a.file, Wait: time.Hour}, queue.ErrCertificate, "expired on 2")
	wantRefusal(t, queue.ConnectConfig{URL: good}, queue.ErrCertificate, "CA file")
	wantRefusal(t, queue.ConnectConfig{URL: good, CAFile: stranger.file}, queue.ErrCertificate, "CA file")
	wantRefusal(t, queue.ConnectConfig{URL: strings.Replace(good, "127.0.0.1", "localhost", 1), CAFile: a.file}, queue.ErrCertificate, "localhost")
	wantRefusal(t, queue.ConnectConfig{URL: mutual, CAFile: a.file}, queue.ErrCertificate)
	wantRefusal(t, queue.ConnectConfig{URL: mutual, CAFile: a.file, CertFile: strangeCert, KeyFile: strangeKey}, queue.ErrCertificate)
	wantRefusal(t, queue.ConnectConfig{URL: mutual, CAFile: a.file, CertFile: oldCert, KeyFile: oldKey}, queue.ErrCertificate, oldCert, "expired on 2")
	plain := strings.Replace(serve(t, jetStream(t)).ClientURL(), "nats://", "tls://", 1)
	wantRefusal(t, queue.ConnectConfig{URL: plain}, queue.ErrCertificate, "no TLS")
}

func TestConnectRefusesUnfitServers(t *testing.T) {
	t.Parallel()
	wantRefusal(t, queue.ConnectConfig{URL: fakeServer(t, "2.10.29"), Wait: time.Hour}, queue.ErrServerVersion, "2.10.29", queue.MinServerVersion, "pausing")
	wantRefusal(t, queue.ConnectConfig{URL: fakeServer(t, "1.4.1")}, queue.ErrServerVersion)
	wantRefusal(t, queue.ConnectConfig{URL: serve(t, &server.Options{}).ClientURL(), Wait: time.Hour}, queue.ErrNoJetStream, "--jetstream")
	// A message of the largest record does not pass.
	small := jetStream(t)
	small.MaxPayload = queue.MaxRecordBytes
	wantRefusal(t, queue.ConnectConfig{URL: serve(t, small).ClientURL(), Wait: time.Hour}, queue.ErrLimits, "max_payload is 786432 bytes")
	// JetStream is disabled for one of two accounts.
	o := jetStream(t)
	account := server.NewAccount("plain")
	o.Accounts = []*server.Account{account}
	o.Users = []*server.User{{Username: "user", Password: "right", Account: account}}
	url := strings.Replace(serve(t, o).ClientURL(), "://", "://user:right@", 1)
	wantRefusal(t, queue.ConnectConfig{URL: url}, queue.ErrNoJetStream, "account")
}

// fakeServer greets like a server of a version and answers only pings.
func fakeServer(t *testing.T, version string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	t.Cleanup(func() { must(t, l.Close()) })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			fmt.Fprintf(conn, "INFO {\"server_id\":\"X\",\"version\":%q,\"max_payload\":1048576,\"headers\":true,\"proto\":1}\r\n", version)
			go func() {
				defer conn.Close()
				for lines := bufio.NewScanner(conn); lines.Scan(); {
					if strings.HasPrefix(lines.Text(), "PING") {
						fmt.Fprint(conn, "PONG\r\n")
					}
				}
			}()
		}
	}()
	return "nats://" + l.Addr().String()
}

func TestConnectConfigValidate(t *testing.T) {
	t.Parallel()
	missing := filepath.Join(t.TempDir(), "missing")
	noise := filepath.Join(t.TempDir(), "noise")
	must(t, os.WriteFile(noise, []byte("hunter2"), 0o600))
	for field, cfg := range map[string]queue.ConnectConfig{
		"URL":       {},
		"address 2": {URL: "nats://a:4222,http://user:hunter2@b"},
		"address 1": {URL: "nats://user:hunter2/x@b:4222"},
		"2 of URL has the port 0, want 1 to 65535": {URL: "nats://a,nats://b:0"},
		"1 of URL has the port 65536":              {URL: "nats://a:65536"},
		"of a password":                            {URL: "nats://user:hunter2%zz@b:4222"},
		"address 3":                                {URL: "nats://a,nats://b,nats://user:12#34@b:4222"},
		"address 4":                                {URL: "nats://a,nats://b,nats://c,nats://user:12?34@b:4222"},
		"Role":                                     {URL: "nats://a", Role: "a.b"},
		"Wait":                                     {URL: "nats://a", Wait: -1},
		"both set":                                 {URL: "nats://a", Credentials: noise, NKeySeed: noise},
		"CertFile":                                 {URL: "nats://a", CertFile: noise},
		"read CertFile":                            {URL: "nats://a", CertFile: noise, KeyFile: noise},
		"read CAFile":                              {URL: "nats://a", CAFile: missing},
		"no PEM certificate":                       {URL: "nats://a", CAFile: noise},
		"read credentials":                         {URL: "nats://a", Credentials: missing},
		"NKey seed":                                {URL: "nats://a", NKeySeed: noise},
	} {
		wantRefusal(t, cfg, queue.ErrConfig, field)
	}
	must(t, queue.ConnectConfig{URL: "nats://a:1,tls://b:65535"}.Validate())
}

// authority signs certificates for 127.0.0.1.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	dir  string
	file string // its own certificate
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{dir: t.TempDir()}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test authority"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-48 * time.Hour), NotAfter: time.Now().Add(48 * time.Hour), KeyUsage: x509.KeyUsageCertSign,
	}
	var err error
	a.key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	der, err := x509.CreateCertificate(rand.Reader, template, template, &a.key.PublicKey, a.key)
	must(t, err)
	a.cert, err = x509.ParseCertificate(der)
	must(t, err)
	a.file = a.write(t, "ca.pem", "CERTIFICATE", der)
	return a
}

// issue signs a certificate that expires at end, for servers and clients.
func (a *authority) issue(t *testing.T, name string, end time.Time) (certFile, keyFile string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-24 * time.Hour), NotAfter: end, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}, a.cert, &key.PublicKey, a.key)
	must(t, err)
	private, err := x509.MarshalECPrivateKey(key)
	must(t, err)
	return a.write(t, name+".pem", "CERTIFICATE", der), a.write(t, name+".key", "EC PRIVATE KEY", private)
}

func (a *authority) write(t *testing.T, name, kind string, der []byte) string {
	t.Helper()
	file := filepath.Join(a.dir, name)
	must(t, os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600))
	return file
}

// server returns the TLS configuration of a server whose certificate expires at end.
func (a *authority) server(t *testing.T, end time.Time, clients tls.ClientAuthType) *tls.Config {
	t.Helper()
	pair, err := tls.LoadX509KeyPair(a.issue(t, "server", end))
	must(t, err)
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	return &tls.Config{Certificates: []tls.Certificate{pair}, ClientCAs: pool, ClientAuth: clients}
}
