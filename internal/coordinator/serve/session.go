package serve

import (
	"cmp"
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"ddiff/api"
)

// A browser signs in at a door: a path below the API that its page draws at random and keeps for its own origin. The session's cookie belongs to
// that path, because browsers send cookies to all ports of a host, and those of a machine may belong to other users: whoever does not know the
// path never gets the cookie, and neither is worth anything without the other. [Tokens] keeps the secret of the caller, encrypted with both.
const (
	doors         = prefix + "/~"
	sessionCookie = "ddiff_session"
	// sessionAge is the longest life of a session; it ends with its token.
	sessionAge = 12 * time.Hour
	handOffAge = time.Minute
	// MaxSessions is the number of open sessions of a token.
	MaxSessions = 64
)

var (
	validDoor    = regexp.MustCompile(`^[0-9a-f]{32}$`)
	validSession = regexp.MustCompile(`^[0-9a-z-]{1,20}\.[A-Z2-7]{26}$`) // the token's id, and a random text
)

// atDoor returns a request at a door as one below the API, and the door.
func atDoor(r *http.Request) (*http.Request, string) {
	door, rest, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, doors), "/")
	if !strings.HasPrefix(r.URL.Path, doors) || !validDoor.MatchString(door) {
		return r, ""
	}
	inner, at := *r, *r.URL
	at.Path = prefix + "/" + rest
	if raw, found := strings.CutPrefix(r.URL.RawPath, doors+door); found {
		at.RawPath = prefix + raw
	} else {
		at.RawPath = ""
	}
	inner.URL = &at
	return &inner, door
}

// kept is what a session is worth.
type kept struct {
	Secret string    `json:"secret"`
	Ends   time.Time `json:"ends"`
}

// lock returns the cipher of a session, and its key in Tokens.
func lock(door, session string) (seal cipher.AEAD, key string, err error) {
	secret := sha256.Sum256([]byte("cipher\n" + door + "\n" + session))
	block, err := aes.NewCipher(secret[:])
	if err == nil {
		seal, err = cipher.NewGCMWithRandomNonce(block)
	}
	name := sha256.Sum256([]byte("name\n" + door + "\n" + session))
	id, _, _ := strings.Cut(session, ".")
	return seal, id + "." + hex.EncodeToString(name[:]), err
}

// keep opens a session at a door for the owner of a secret, for at most a time.
func (s *Server) keep(ctx context.Context, door, secret string, age time.Duration) (session string, t api.Token, ends time.Time, err error) {
	if t, err = s.cfg.Tokens.Token(ctx, secret); err != nil {
		return "", t, ends, err
	}
	if ends = time.Now().Add(age); !t.Ends.IsZero() && t.Ends.Before(ends) {
		ends = t.Ends
	}
	session = cmp.Or(t.ID, "local") + "." + rand.Text()
	seal, key, err := lock(door, session)
	if err != nil {
		return "", t, ends, err
	}
	data, err := json.Marshal(kept{secret, ends})
	if err == nil {
		err = s.cfg.Tokens.KeepSession(ctx, key, seal.Seal(nil, nil, data, nil), time.Until(ends))
	}
	return session, t, ends, err
}

// handOff returns a text that the page at the door of a browser exchanges for a session within handOffAge, once.
func (s *Server) handOff(ctx context.Context, secret string) (string, error) {
	var random [16]byte
	rand.Read(random[:])
	door := hex.EncodeToString(random[:])
	session, _, _, err := s.keep(ctx, door, secret, handOffAge)
	return door + "." + session, err
}

// signIn opens a session at the door of a request, by a token or what handOff has returned, in place of the session that the browser has.
func (s *Server) signIn(ctx context.Context, secret string) (*signedIn, error) {
	i := identityOf(ctx)
	if i.door == "" {
		return nil, api.NewError(api.ErrInvalid, "a browser signs in below "+doors+"RANDOM/, where RANDOM has 32 digits of 0-9a-f")
	}
	if door, session, found := strings.Cut(secret, "."); found && validDoor.MatchString(door) {
		var err error
		if secret, err = s.secretOf(ctx, door, session); err == nil {
			err = s.end(ctx, door, session)
		}
		if err != nil {
			return nil, err
		}
	}
	session, t, ends, err := s.keep(ctx, i.door, secret, sessionAge)
	if err == nil {
		err = s.end(ctx, i.door, i.session)
	}
	if err != nil {
		return nil, err
	}
	return &signedIn{cookie(i, session, int(time.Until(ends).Seconds())), s.me(t)}, nil
}

// secretOf returns the secret of the caller of a session.
func (s *Server) secretOf(ctx context.Context, door, session string) (string, error) {
	if !validSession.MatchString(session) {
		return "", ErrSession()
	}
	seal, key, err := lock(door, session)
	if err != nil {
		return "", err
	}
	data, err := s.cfg.Tokens.Session(ctx, key)
	if err != nil {
		return "", err
	}
	var k kept
	if data, err = seal.Open(nil, nil, data, nil); err != nil || json.Unmarshal(data, &k) != nil || time.Now().After(k.Ends) {
		return "", ErrSession()
	}
	return k.Secret, nil
}

// end ends a session, if it is one.
func (s *Server) end(ctx context.Context, door, session string) error {
	if !validSession.MatchString(session) {
		return nil
	}
	_, key, err := lock(door, session)
	if err != nil {
		return err
	}
	return s.cfg.Tokens.EndSession(ctx, key)
}

// cookie is the cookie of a session, which ends after an age in seconds, and at once if that is negative. Without a path of its own it is that of
// the door as the browser knows it: a proxy may serve the page below another path.
func cookie(i identity, session string, age int) http.Cookie {
	return http.Cookie{Name: sessionCookie, Value: session, MaxAge: age, HttpOnly: true, Secure: i.secure, SameSite: http.SameSiteStrictMode}
}

// signedIn is an answer that sets or removes the cookie of a browser.
type signedIn struct {
	Cookie http.Cookie `header:"Set-Cookie"`
	Body   api.Me
}

func (s *Server) addSession() {
	login := s.operation(anyone, http.MethodPost, "/session", "Open the session of a browser by its token", func(op *huma.Operation) {
		op.Errors = append(op.Errors, http.StatusUnauthorized, http.StatusConflict)
	})
	huma.Register(s.api, login, func(ctx context.Context, in *struct {
		Body struct {
			Token string `json:"token" minLength:"1" maxLength:"200"`
		}
	},
	) (*signedIn, error) {
		out, err := s.signIn(ctx, in.Body.Token)
		if err != nil {
			return nil, s.failed(ctx, login, err)
		}
		return out, nil
	})
	add(s, anyone, http.MethodGet, "/session", "Get how a browser signs in, and its owner and role if it has", func(ctx context.Context, _ *none) (api.Me, error) {
		return s.me(identityOf(ctx).token), nil
	})
	logout := s.operation(anyone, http.MethodDelete, "/session", "End the session of a browser")
	huma.Register(s.api, logout, func(ctx context.Context, _ *none) (*signedIn, error) {
		i := identityOf(ctx)
		if err := s.end(ctx, i.door, i.session); err != nil {
			return nil, s.failed(ctx, logout, err)
		}
		return &signedIn{cookie(i, "", -1), s.me(api.Token{})}, nil
	})
}

// ErrSession is the error of a session that has ended, or never was.
func ErrSession() error { return api.NewError(api.ErrNoToken, "the session has ended; sign in again") }

// ErrSessions is the error of one session too many.
func ErrSessions() error {
	return api.NewError(api.ErrRefused, fmt.Sprintf("%d browsers are signed in with this token; sign out of one, or wait up to %v", MaxSessions, sessionAge))
}
