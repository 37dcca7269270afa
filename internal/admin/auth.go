package admin

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/edihub/edihub/internal/store"
)

// Role of a token. Each may do what those below it may.
type Role int

// The roles of CONTRACTS, HTTP.
const (
	// Public needs no token.
	Public Role = iota
	// Viewer reads lists, states, findings and metrics.
	Viewer
	// Operator also reads payloads, submits, pauses, scales, replays and discards.
	Operator
	// Admin also makes tokens.
	Admin
)

// String returns the word that the API uses.
func (r Role) String() string {
	switch r {
	case Public:
		return "public"
	case Viewer:
		return "viewer"
	case Operator:
		return "operator"
	case Admin:
		return "admin"
	}
	return fmt.Sprintf("role-%d", int(r))
}

// ParseRole reads the name of a role that a token may have.
func ParseRole(s string) (Role, bool) {
	for _, r := range []Role{Viewer, Operator, Admin} {
		if r.String() == s {
			return r, true
		}
	}
	return 0, false
}

// TokenFile is the name of the file in the data folder that holds the token of this node.
const TokenFile = "admin.token"

// URLFile is the name of the file in the data folder that holds the URL of the admin listener, so
// that the command line finds a hub that listens on a port of the system's choice.
const URLFile = "admin.url"

const (
	tokenBytes  = 32
	tokenLength = 43 // of 32 bytes in base64url without padding
	tokenIDSize = 8  // bytes of the hash that name a token
	settingName = "token."
)

// savedToken is what the store keeps of a token: never the token itself.
type savedToken struct {
	ID      string    `json:"id"`
	Name    string    `json:"name,omitempty"`
	Role    string    `json:"role"`
	SHA256  string    `json:"sha256"`
	Created time.Time `json:"created_at"`
	By      string    `json:"created_by,omitempty"`
	Revoked bool      `json:"revoked,omitempty"`
}

// identity is who a request comes from.
type identity struct {
	id   string // of the token
	name string
	role Role
}

// newToken returns 256 random bits as base64url.
func newToken() string {
	b := make([]byte, tokenBytes)
	_, _ = rand.Read(b) // crypto/rand.Read never fails
	return base64.RawURLEncoding.EncodeToString(b)
}

// describeToken names a token by the first bytes of its hash, so that it is found in the store
// without being in it.
func describeToken(token string, role Role, name, by string, now time.Time) savedToken {
	sum := sha256.Sum256([]byte(token))
	return savedToken{
		ID: hex.EncodeToString(sum[:tokenIDSize]), Name: name, Role: role.String(), SHA256: hex.EncodeToString(sum[:]),
		Created: now.UTC(), By: by,
	}
}

func saveToken(ctx context.Context, st store.Store, t *savedToken) error {
	raw, err := json.Marshal(t)
	if err != nil {
		return fmt.Errorf("save token: %w", err)
	}
	if err := st.Update(ctx, func(tx store.Tx) error { return tx.SaveSetting(settingName+t.ID, raw) }); err != nil {
		return fmt.Errorf("save token: %w", err)
	}
	return nil
}

// loadToken returns nil when there is no token of that id.
func loadToken(ctx context.Context, st store.Reader, id string) (*savedToken, error) {
	raw, err := st.GetSetting(ctx, settingName+id)
	if errors.Is(err, store.ErrNotFound) || (err == nil && len(raw) == 0) {
		return nil, nil //nolint:nilnil // "No such token" is an answer like any other.
	}
	if err != nil {
		return nil, fmt.Errorf("read token: %w", err)
	}
	var t savedToken
	if err := json.Unmarshal(raw, &t); err != nil {
		return nil, fmt.Errorf("read token: %w", err)
	}
	return &t, nil
}

// EnsureToken makes the admin token of this node at the first start and writes it to admin.token
// in the data folder, readable by its owner only. A token that is there is made valid in the
// store, unless it was revoked: then a new one takes its place. It returns the path of the file.
func EnsureToken(ctx context.Context, st store.Store, dataDir string, now time.Time) (string, error) {
	path := filepath.Join(dataDir, TokenFile)
	token, err := readTokenFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return "", err
	default:
		want := describeToken(token, Admin, "first token of "+dataDir, "", now)
		have, err := loadToken(ctx, st, want.ID)
		if err != nil {
			return "", err
		}
		if have == nil {
			return path, saveToken(ctx, st, &want)
		}
		if !have.Revoked {
			return path, nil
		}
	}
	token = newToken()
	if err := WriteSecret(path, []byte(token+"\n")); err != nil {
		return "", fmt.Errorf("write token: %w", err)
	}
	// The file is first: a token in the store that nobody holds would stay for ever.
	t := describeToken(token, Admin, "first token of "+dataDir, "", now)
	return path, saveToken(ctx, st, &t)
}

// readTokenFile reads a token and takes the file away from everybody but its owner.
func readTokenFile(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", fmt.Errorf("read token: %w", err)
	}
	defer f.Close() //nolint:errcheck // It was only read.
	st, err := f.Stat()
	if err != nil {
		return "", fmt.Errorf("read token: %w", err)
	}
	if st.Mode().Perm()&0o077 != 0 {
		if err := f.Chmod(0o600); err != nil {
			return "", fmt.Errorf("others may read %s: %w", path, err)
		}
	}
	b := make([]byte, 256)
	n, _ := f.Read(b) // an empty file is no token
	token := strings.TrimSpace(string(b[:n]))
	if !wellFormed(token) {
		return "", fmt.Errorf("%s does not hold a token: delete it and start again for a new one", path)
	}
	return token, nil
}

func wellFormed(token string) bool {
	if len(token) != tokenLength {
		return false
	}
	_, err := base64.RawURLEncoding.DecodeString(token)
	return err == nil
}

// WriteSecret writes a file that its owner only may read (0600), as a whole or not at all.
func WriteSecret(path string, content []byte) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*") // CreateTemp uses mode 0600
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(f.Name()) // the first error is the one to tell
		}
	}()
	_, err = f.Write(content)
	if err == nil {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	return err
}

// WriteURL notes where the admin listener is, for the command line.
func WriteURL(dataDir, url string) error {
	if err := WriteSecret(filepath.Join(dataDir, URLFile), []byte(url+"\n")); err != nil {
		return fmt.Errorf("write %s: %w", URLFile, err)
	}
	return nil
}

// authenticate says who a request comes from.
func (a *api) authenticate(r *http.Request) (identity, error) {
	token, ok := bearer(r)
	if !ok {
		return identity{}, unauthorized("a bearer token is needed; it is in " + TokenFile + " in the data folder of the hub")
	}
	if !wellFormed(token) {
		return identity{}, unauthorized("this is not a valid token")
	}
	sum := sha256.Sum256([]byte(token))
	saved, err := loadToken(r.Context(), a.Store, hex.EncodeToString(sum[:tokenIDSize]))
	if err != nil {
		return identity{}, err
	}
	var want []byte
	if saved != nil {
		want, _ = hex.DecodeString(saved.SHA256) // what is no hash equals none
	}
	if subtle.ConstantTimeCompare(sum[:], want) != 1 || saved.Revoked {
		return identity{}, unauthorized("this is not a valid token")
	}
	role, ok := ParseRole(saved.Role)
	if !ok {
		return identity{}, unauthorized("the role of this token is not known")
	}
	return identity{id: saved.ID, name: saved.Name, role: role}, nil
}

// bearer reads the Authorization header (RFC 6750 §2.1). A token in the URL is not taken: URLs end
// up in logs.
func bearer(r *http.Request) (string, bool) {
	hs := r.Header.Values("Authorization")
	if len(hs) != 1 {
		return "", false
	}
	scheme, token, ok := strings.Cut(hs[0], " ")
	return strings.TrimSpace(token), ok && strings.EqualFold(scheme, "Bearer")
}

func unauthorized(detail string) *Problem {
	p := problem(http.StatusUnauthorized, "UNAUTHORIZED", detail)
	p.header = [2]string{"WWW-Authenticate", `Bearer realm="edihub"`}
	return p
}

type whoKey struct{}

// who returns the identity that the guard of the route has found.
func who(r *http.Request) identity {
	id, _ := r.Context().Value(whoKey{}).(identity)
	return id
}

// tokenRequest is the body of POST /v1/tokens.
type tokenRequest struct {
	Role string `json:"role"`
	Name string `json:"name"`
}

// tokenView is what the API shows of a token; the token itself only once.
type tokenView struct {
	ID      string    `json:"id"`
	Token   string    `json:"token,omitempty"`
	Role    string    `json:"role"`
	Name    string    `json:"name,omitempty"`
	Created time.Time `json:"created_at"`
	By      string    `json:"created_by,omitempty"`
	Revoked bool      `json:"revoked"`
}

// maxText bounds names and reasons, in bytes.
const maxText = 500

func (a *api) createToken(w http.ResponseWriter, r *http.Request) error {
	var in tokenRequest
	if err := readJSON(w, r, &in, false); err != nil {
		return err
	}
	role, ok := ParseRole(in.Role)
	if !ok {
		return badRequest("ROLE_UNKNOWN", "role %q is not known; allowed: viewer, operator, admin", in.Role)
	}
	if err := checkText("name", in.Name); err != nil {
		return err
	}
	token := newToken()
	t := describeToken(token, role, in.Name, who(r).id, a.Clock.Now())
	if err := saveToken(r.Context(), a.Store, &t); err != nil {
		return err
	}
	a.audit(r, auditObject(), "token_created", "token "+t.ID+" role "+t.Role+" "+in.Name)
	v := tokenShown(&t)
	v.Token = token
	writeJSON(w, http.StatusCreated, v)
	return nil
}

func tokenShown(t *savedToken) tokenView {
	return tokenView{ID: t.ID, Role: t.Role, Name: t.Name, Created: t.Created.UTC(), By: t.By, Revoked: t.Revoked}
}

// revokeToken is idempotent. The token in hand may revoke itself; the next start makes a new one.
func (a *api) revokeToken(w http.ResponseWriter, r *http.Request) error {
	id := r.PathValue("id")
	t, err := loadToken(r.Context(), a.Store, id)
	if err != nil {
		return err
	}
	if t == nil {
		return notFound("token " + quoted(id))
	}
	if !t.Revoked {
		t.Revoked = true
		if err := saveToken(r.Context(), a.Store, t); err != nil {
			return err
		}
		a.audit(r, auditObject(), "token_revoked", "token "+t.ID+" "+t.Name)
	}
	writeJSON(w, http.StatusOK, tokenShown(t))
	return nil
}
