// Package api has the types of the HTTP API of a cluster, as they travel in JSON, and [Client], a client of it.
//
// A shape is the same wherever it appears: an answer of the server, the output of a verb with --json, and a value of this package. A new
// route has its types here, its handler in internal/coordinator/serve, and a method of [Client] if a verb needs it.
package api

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/hashicorp/go-retryablehttp"

	"ddiff/internal/outbound"
	"ddiff/internal/record"
	"ddiff/internal/regular"
	"ddiff/manifest"
)

// ClientConfig describes a Client.
type ClientConfig struct {
	// URL is the address of a coordinator, as in https://host:8620. Required.
	URL string
	// Token is the access token. Empty: none.
	Token string
	// CAFile is a PEM file with the authorities of the server's certificate. Empty: those of the system.
	CAFile string
}

// Client calls the API of a coordinator. It repeats a request that had no answer: all requests but CreateToken are idempotent. Errors are an
// [Error] of the server, or wrap [ErrUnavailable]. Its methods may be called concurrently.
type Client struct {
	base  *url.URL
	token string
	again *retryablehttp.Client
	once  *retryablehttp.Client // for requests that are not idempotent
}

// maxAnswer limits the answer of a server that is perhaps no coordinator, in bytes.
const maxAnswer = 256 << 20

// Loopback is the address of this machine at which coordinators listen. The name localhost also means ::1, where another user may listen, who
// would get the token. With TLS the server has a certificate of its name.
const Loopback = "127.0.0.1"

func numeric(server *url.URL) {
	if server.Scheme == "http" && isLocalhost(server.Hostname()) {
		server.Host = strings.TrimSuffix(net.JoinHostPort(Loopback, server.Port()), ":")
	}
}

func isLocalhost(name string) bool {
	return strings.EqualFold(strings.TrimSuffix(name, "."), "localhost")
}

const badServer = "the address of the server is not of the form https://host:8620"

// NewClient returns a client. It sends no request.
func NewClient(cfg ClientConfig) (*Client, error) {
	base, err := url.Parse(cfg.URL)
	if err != nil || base.Host == "" || base.Scheme != "http" && base.Scheme != "https" {
		return nil, NewError(ErrInvalid, badServer) // the text may have a password
	}
	if base.User != nil || base.RawQuery != "" || base.Fragment != "" {
		return nil, NewError(ErrInvalid, badServer+", without user, password, query and fragment: the access token is a setting of its own")
	}
	numeric(base)
	transport := http.DefaultTransport.(*http.Transport).Clone() //nolint:forcetypeassert // documented
	if cfg.CAFile != "" {
		pem, err := regular.Read(cfg.CAFile, regular.MaxConfigBytes)
		if err != nil {
			return nil, NewError(ErrInvalid, fmt.Sprintf("read the authorities of the server's certificate: %v", err))
		}
		transport.TLSClientConfig = &tls.Config{RootCAs: x509.NewCertPool(), MinVersion: tls.VersionTLS12}
		if !transport.TLSClientConfig.RootCAs.AppendCertsFromPEM(pem) {
			return nil, NewError(ErrInvalid, cfg.CAFile+" has no certificate")
		}
	}
	plain := outbound.Client(transport, maxAnswer) // a token belongs to one server
	c := &Client{base: base, token: cfg.Token, again: retryablehttp.NewClient(), once: retryablehttp.NewClient()}
	for _, r := range []*retryablehttp.Client{c.again, c.once} {
		r.HTTPClient, r.Logger, r.RetryMax, r.RetryWaitMin, r.ErrorHandler = plain, nil, 4, 200*time.Millisecond, retryablehttp.PassthroughErrorHandler
	}
	c.once.RetryMax = 0
	return c, nil
}

// request sends a request and returns the body of its answer.
func (c *Client) request(ctx context.Context, method, at string, query url.Values, header http.Header, body []byte) ([]byte, error) {
	u := *c.base
	u.Path, u.RawQuery = path.Join(c.base.Path, "/api/v1", at), query.Encode()
	r, err := retryablehttp.NewRequestWithContext(ctx, method, u.String(), body)
	if err != nil {
		return nil, err
	}
	for name, values := range header {
		r.Header[name] = values
	}
	if c.token != "" {
		r.Header.Set("Authorization", "Bearer "+c.token)
	}
	client := c.again
	if method == http.MethodPost && at == "tokens" {
		client = c.once
	}
	answer, err := client.Do(r)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil {
		return nil, fmt.Errorf("%w: the server does not answer: %w", ErrUnavailable, err)
	}
	data, err := io.ReadAll(answer.Body)
	if err := errors.Join(err, answer.Body.Close()); err != nil {
		return nil, fmt.Errorf("%w: read the answer of the server: %w", ErrUnavailable, err)
	}
	if answer.StatusCode < 300 {
		return data, nil
	}
	problem := &Error{}
	if json.Unmarshal(data, problem) != nil || problem.Detail == "" {
		problem.Detail = fmt.Sprintf("the server answers %s to %s %s; is it a coordinator of ddiff?", answer.Status, method, u.Path)
	}
	if problem.Detail == "validation failed" { // of a parameter
		for _, f := range problem.Errors {
			problem.Detail += fmt.Sprintf("; %s: %s, got %v", f.Location, f.Message, f.Value)
		}
	}
	problem.Status = answer.StatusCode
	return nil, problem
}

// call sends a request with a JSON body, which may be nil, and reads the JSON answer.
func call[T any](ctx context.Context, c *Client, method, at string, query url.Values, in any) (out T, err error) {
	var body []byte
	header := http.Header{}
	if in != nil {
		if body, err = json.Marshal(in); err != nil {
			return out, err
		}
		header.Set("Content-Type", "application/json")
	}
	data, err := c.request(ctx, method, at, query, header, body)
	return decode[T](data, err)
}

func decode[T any](data []byte, err error) (out T, _ error) {
	if err == nil {
		err = json.NewDecoder(bytes.NewReader(data)).Decode(&out)
		if err != nil {
			err = fmt.Errorf("%w: read the answer of the server: %w", ErrUnexpected, err)
		}
	}
	return out, err
}

func campaignPath(id string, rest ...string) string {
	return path.Join(append([]string{"campaigns", url.PathEscape(id)}, rest...)...)
}

// Campaigns lists the campaigns.
func (c *Client) Campaigns(ctx context.Context, archived bool) (Campaigns, error) {
	return call[Campaigns](ctx, c, http.MethodGet, "campaigns", url.Values{"archived": {strconv.FormatBool(archived)}}, nil)
}

// Campaign returns a campaign and its status.
func (c *Client) Campaign(ctx context.Context, id string) (CampaignStatus, error) {
	return call[CampaignStatus](ctx, c, http.MethodGet, campaignPath(id), nil, nil)
}

// Submit submits a campaign file, YAML or JSON.
func (c *Client) Submit(ctx context.Context, file []byte, o Order) (Submitted, error) {
	return decode[Submitted](c.submit(ctx, file, o, false))
}

// Check checks a campaign file and counts its items.
func (c *Client) Check(ctx context.Context, file []byte, o Order) (Checked, error) {
	return decode[Checked](c.submit(ctx, file, o, true))
}

// SubmitSpec is Submit of a campaign whose paths are absolute.
func (c *Client) SubmitSpec(ctx context.Context, spec *manifest.Spec, o Order) (Submitted, error) {
	file, err := spec.YAML("")
	if err != nil {
		return Submitted{}, err
	}
	return c.Submit(ctx, file, o)
}

func (c *Client) submit(ctx context.Context, file []byte, o Order, dry bool) ([]byte, error) {
	query := url.Values{"canary": {strconv.Itoa(o.Canary)}, "dry_run": {strconv.FormatBool(dry)}}
	for name, value := range map[string]string{"output": o.Output, "prior_sha256": o.PriorSHA256, "priority": string(o.Priority)} {
		if value != "" {
			query.Set(name, value)
		}
	}
	if o.Weight != 0 {
		query.Set("weight", strconv.Itoa(o.Weight))
	}
	for _, f := range o.Operators {
		query.Add("operator", f.SHA256+"="+f.Path)
	}
	return c.request(ctx, http.MethodPost, "campaigns", query, http.Header{"Content-Type": {"application/yaml"}}, file)
}

// Want sets the wanted state of a campaign.
func (c *Client) Want(ctx context.Context, id string, w Wanted) (Controlled, error) {
	verb, query := map[Wanted]string{
		record.WantPause: "pause", record.WantRun: "resume", record.WantCancel: "cancel", record.WantCancelNow: "cancel",
	}[w], url.Values{}
	if w == record.WantCancelNow {
		query.Set("now", "true")
	}
	return call[Controlled](ctx, c, http.MethodPost, campaignPath(id, verb), query, nil)
}

// Change changes settings of a campaign that has not finished, and returns all that it has then.
func (c *Client) Change(ctx context.Context, id string, change Change) (Change, error) {
	return call[Change](ctx, c, http.MethodPatch, campaignPath(id), nil, change)
}

// Retry publishes items again, and waits for the coordinator's answer until ctx ends. Equal requests with the same key have one effect;
// without one it makes one up.
func (c *Client) Retry(ctx context.Context, id, key string, r Retry) (Retried, error) {
	return command[Retried](ctx, c, id, "retry", key, r)
}

// Append adds rows, and waits for the coordinator's answer until ctx ends. Keys are as those of Retry.
func (c *Client) Append(ctx context.Context, id, key string, a Append) (Appended, error) {
	return command[Appended](ctx, c, id, "append", key, a)
}

// command sends a command to a campaign until a coordinator answers it.
func command[T any](ctx context.Context, c *Client, id, verb, key string, in any) (T, error) {
	body, err := json.Marshal(in)
	if err != nil {
		var none T
		return none, err
	}
	header := http.Header{"Content-Type": {"application/json"}, "Idempotency-Key": {cmp.Or(key, rand.Text())}}
	for {
		out, err := decode[T](c.request(ctx, http.MethodPost, campaignPath(id, verb), nil, header, body))
		var problem *Error
		if !errors.As(err, &problem) || problem.Status != http.StatusServiceUnavailable || ctx.Err() != nil {
			return out, err
		}
		// The command waits on the board for a coordinator.
		if !strings.Contains(problem.Detail, "wait for a coordinator") {
			return out, err
		}
	}
}

// Delete deletes a campaign that has ended, with results also those that no other campaign refers to; dry only says what it would delete.
func (c *Client) Delete(ctx context.Context, id string, results, dry bool) (Deleted, error) {
	query := url.Values{"results": {strconv.FormatBool(results)}, "dry_run": {strconv.FormatBool(dry)}}
	return call[Deleted](ctx, c, http.MethodDelete, campaignPath(id), query, nil)
}

// Me returns the owner and the role of the token.
func (c *Client) Me(ctx context.Context) (Me, error) {
	return call[Me](ctx, c, http.MethodGet, "me", nil, nil)
}

// Logs returns the records of attempts; item is an identity or its beginning, or empty for all.
func (c *Client) Logs(ctx context.Context, id, item string) (Logs, error) {
	return call[Logs](ctx, c, http.MethodGet, campaignPath(id, "logs"), url.Values{"item": {item}}, nil)
}

// Items returns a page of the items of a campaign.
func (c *Client) Items(ctx context.Context, id string, q ItemQuery) (Items, error) {
	query := url.Values{"limit": {strconv.Itoa(cmp.Or(q.Limit, 100))}}
	for name, value := range map[string]string{
		"state": string(q.State), "task": q.Task, "method": q.Method, "name": q.Name, "warning": q.Warning, "worker": q.Worker, "reason": q.Reason,
		"sort": q.Sort, "cursor": q.Cursor,
	} {
		if value != "" {
			query.Set(name, value)
		}
	}
	return call[Items](ctx, c, http.MethodGet, campaignPath(id, "items"), query, nil)
}

// File returns a file of an item, such as restored.png.
func (c *Client) File(ctx context.Context, id, item, name string) ([]byte, error) {
	return c.request(ctx, http.MethodGet, campaignPath(id, "items", item, "files", url.PathEscape(name)), nil, nil, nil)
}

// Workers lists the workers.
func (c *Client) Workers(ctx context.Context) (Workers, error) {
	return call[Workers](ctx, c, http.MethodGet, "workers", nil, nil)
}

// Tokens lists the access tokens.
func (c *Client) Tokens(ctx context.Context) (Tokens, error) {
	return call[Tokens](ctx, c, http.MethodGet, "tokens", nil, nil)
}

// CreateToken returns a new token with its secret, which ends after some days; 0 for TokenDays.
func (c *Client) CreateToken(ctx context.Context, owner string, role Role, days int) (Token, error) {
	return call[Token](ctx, c, http.MethodPost, "tokens", nil, map[string]any{"owner": owner, "role": role, "days": days})
}

// RevokeToken removes a token.
func (c *Client) RevokeToken(ctx context.Context, id string) error {
	_, err := call[Tokens](ctx, c, http.MethodDelete, "tokens/"+url.PathEscape(id), nil, nil)
	return err
}
