package idtoken_test

import (
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"atelier/internal/base/fault"
	"atelier/internal/base/ids"
	"atelier/internal/base/keyring"
	"atelier/internal/base/sqldb"
	"atelier/internal/base/sqldb/dbtest"
	"atelier/internal/people/idtoken"
)

const (
	issuer   = "https://atelier.example.com"
	lifetime = time.Hour
)

var start = time.Date(2026, 11, 15, 9, 30, 0, 700_000_000, time.UTC)

// installation is a database with a clock and nodes that share a secret.
type installation struct {
	db    *sqldb.DB
	box   keyring.Box
	clock atomic.Int64 // since start
}

func (in *installation) now() time.Time       { return start.Add(time.Duration(in.clock.Load())) }
func (in *installation) pass(d time.Duration) { in.clock.Add(int64(d)) }

func install(t testing.TB, engine string) *installation {
	t.Helper()
	ring, err := keyring.New(base64.StdEncoding.EncodeToString([]byte(ids.Text(32))))
	if err != nil {
		t.Fatal(err)
	}
	in := &installation{box: ring.BoxFor("signing keys")}
	in.db = dbtest.OpenAt(t, dbtest.URL(t, engine), in.now)
	return in
}

// each runs fn with an installation on every database.
func each(t *testing.T, fn func(t *testing.T, in *installation)) {
	t.Helper()
	for _, engine := range dbtest.Engines {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			in := install(t, engine)
			fn(t, in)
			if bad, err := in.db.VerifyChecks(context.Background(), idtoken.Checks); err != nil || len(bad) != 0 {
				t.Errorf("checks = %v, %v", bad, err)
			}
		})
	}
}

func (in *installation) node() *idtoken.Issuer {
	return idtoken.New(in.db, idtoken.Options{Box: in.box, Issuer: issuer, Lifetime: lifetime, Now: in.now})
}

func (in *installation) sign(t testing.TB, i *idtoken.Issuer, c idtoken.Claims) (token string, expires time.Time) {
	t.Helper()
	err := in.db.Write(context.Background(), func(tx *sqldb.Tx) (err error) {
		token, expires, err = i.SignToken(context.Background(), tx, c)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return token, expires
}

func (in *installation) rotate(t testing.TB, i *idtoken.Issuer) (kid string) {
	t.Helper()
	err := in.db.Write(context.Background(), func(tx *sqldb.Tx) (err error) { kid, err = i.RotateKey(context.Background(), tx); return err })
	if err != nil {
		t.Fatal(err)
	}
	return kid
}

// key gives the key that signs, as somebody would have it who has the secret.
func (in *installation) key(t testing.TB) (kid string, private ed25519.PrivateKey) {
	t.Helper()
	var sealed string
	if err := in.db.QueryRow(context.Background(), `SELECT id, private FROM signing_key WHERE replaced IS NULL`).Scan(&kid, &sealed); err != nil {
		t.Fatal(err)
	}
	seed, err := in.box.Open(sealed, "signing_key "+kid)
	if err != nil {
		t.Fatal(err)
	}
	return kid, ed25519.NewKeyFromSeed(seed)
}

func someone() idtoken.Claims {
	return idtoken.Claims{PersonID: ids.New(), DeviceID: ids.New()}
}

// refused holds that err is the one answer for a token that is no good.
func refused(t *testing.T, name string, err error) {
	t.Helper()
	f, ok := errors.AsType[*fault.Error](err)
	if !ok || f.Code != fault.Unauthenticated || f.Message != "A valid credential is required." || len(f.Details) != 0 {
		t.Errorf("%s: %v, want %s", name, err, fault.Unauthenticated)
	}
}

func TestATokenSaysWhoAndWhere(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, in *installation) {
		here, there, who := in.node(), in.node(), someone()
		token, expires := in.sign(t, here, who)
		for range 2 { // checked, then remembered
			for name, node := range map[string]*idtoken.Issuer{"here": here, "there": there} {
				if got, err := node.VerifyToken(t.Context(), token); err != nil || got != who {
					t.Errorf("%s = %+v, %v, want %+v", name, got, err, who)
				}
			}
		}
		part := strings.Split(token, ".")
		header, _ := base64.RawURLEncoding.DecodeString(part[0])
		kid, _ := in.key(t)
		if want := `{"alg":"EdDSA","kid":"` + kid + `","typ":"JWT"}`; string(header) != want {
			t.Errorf("header = %s, want %s", header, want)
		}
		payload, _ := base64.RawURLEncoding.DecodeString(part[1])
		var claims map[string]any
		if err := json.Unmarshal(payload, &claims); err != nil {
			t.Fatal(err)
		}
		if id, _ := claims["jti"].(string); !ids.Valid(id) {
			t.Errorf("jti = %v", claims["jti"])
		}
		delete(claims, "jti")
		want := fmt.Sprint(map[string]any{"iss": issuer, "aud": issuer, "sub": who.PersonID, "device_id": who.DeviceID, "token_use": "id",
			"iat": float64(start.Unix()), "exp": float64(start.Add(lifetime).Unix())})
		if got := fmt.Sprint(claims); got != want {
			t.Errorf("claims = %s, want %s", got, want)
		}
		if !expires.Equal(start.Add(lifetime).Truncate(time.Second)) {
			t.Errorf("expires = %v", expires)
		}
		if again, _ := in.sign(t, here, who); again == token {
			t.Error("two tokens are equal")
		}
	})
}

func TestATokenEndsWhenItSays(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, in *installation) {
		node, fresh := in.node(), in.node()
		token, expires := in.sign(t, node, someone())
		if _, err := node.VerifyToken(t.Context(), token); err != nil {
			t.Fatal(err)
		}
		in.pass(expires.Sub(in.now()) - time.Microsecond)
		for range 2 { // the second is remembered for less than trusted allows
			if _, err := node.VerifyToken(t.Context(), token); err != nil {
				t.Errorf("just before: %v", err)
			}
		}
		in.pass(time.Microsecond)
		_, err := node.VerifyToken(t.Context(), token)
		refused(t, "remembered", err)
		_, err = fresh.VerifyToken(t.Context(), token)
		refused(t, "never seen", err)
	})
}

func TestRotationKeepsTokensValid(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, in *installation) {
		here, there, who := in.node(), in.node(), someone()
		old, _ := in.sign(t, here, who)
		before, _ := in.key(t)
		if _, err := there.VerifyToken(t.Context(), old); err != nil {
			t.Fatal(err)
		}
		kid := in.rotate(t, here)
		young, _ := in.sign(t, there, who) // a node that signed with nothing yet
		own, _ := in.sign(t, here, who)    // and one that has the old key at hand
		if kid == before || keyOf(t, young) != kid || keyOf(t, own) != kid || keyOf(t, old) != before {
			t.Errorf("keys %s, %s, %s; before %s, now %s", keyOf(t, old), keyOf(t, young), keyOf(t, own), before, kid)
		}
		for name, token := range map[string]string{"old": old, "young": young, "own": own} {
			for _, node := range []*idtoken.Issuer{here, there, in.node()} {
				if got, err := node.VerifyToken(t.Context(), token); err != nil || got != who {
					t.Errorf("%s = %+v, %v", name, got, err)
				}
			}
		}
		if got := published(t, here); len(got) != 2 || got[0] != kid && got[1] != kid {
			t.Errorf("published = %v, want %s and %s", got, kid, before)
		}
		in.pass(lifetime - time.Second)
		if _, err := in.node().VerifyToken(t.Context(), old); err != nil {
			t.Errorf("an old token in its last second: %v", err)
		}
		in.pass(3 * time.Minute)
		if got := published(t, there); len(got) != 1 || got[0] != kid {
			t.Errorf("published after an hour = %v, want %s", got, kid)
		}
		sweep := func() (left int) {
			t.Helper()
			if err := in.db.Write(t.Context(), func(tx *sqldb.Tx) error { return here.DeleteExpiredKeys(t.Context(), tx) }); err != nil {
				t.Fatal(err)
			}
			if err := in.db.QueryRow(t.Context(), `SELECT count(*) FROM signing_key`).Scan(&left); err != nil {
				t.Fatal(err)
			}
			return left
		}
		if left := sweep(); left != 2 {
			t.Errorf("%d keys after the first sweep, want 2", left)
		}
		in.pass(lifetime)
		if left := sweep(); left != 1 {
			t.Errorf("%d keys after the second sweep, want 1", left)
		}
	})
}

// TestARotatedKeyEndsForThieves has somebody keep a private key and make a
// token that lasts for years: it ends with the key, on nodes that know the key
// and the token too.
func TestARotatedKeyEndsForThieves(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, in *installation) {
		node, who := in.node(), someone()
		in.sign(t, node, who)
		kid, private := in.key(t)
		claims := honest(who)
		claims["exp"] = start.AddDate(10, 0, 0).Unix()
		forged := forge(header(kid), text(claims), private)
		if _, err := node.VerifyToken(t.Context(), forged); err != nil {
			t.Fatalf("the test's token is not well made: %v", err)
		}
		in.rotate(t, node)
		for in.clock.Load() < int64(lifetime+time.Minute) { // a busy node never forgets
			node.VerifyToken(t.Context(), forged)
			in.pass(30 * time.Second)
		}
		in.pass(2 * time.Minute)
		_, err := node.VerifyToken(t.Context(), forged)
		refused(t, "a stolen key", err)
	})
}

// TestManyNodesMakeOneKey has first tokens signed and keys rotated at once.
func TestManyNodesMakeOneKey(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, in *installation) {
		const nodes = 16
		who := someone()
		all := func(do func(i *idtoken.Issuer) string) map[string]int {
			var group sync.WaitGroup
			kids := make([]string, nodes)
			for n := range nodes {
				group.Go(func() { kids[n] = do(in.node()) })
			}
			group.Wait()
			count := map[string]int{}
			for _, k := range kids {
				count[k]++
			}
			return count
		}
		if got := all(func(i *idtoken.Issuer) string { token, _ := in.sign(t, i, who); return keyOf(t, token) }); len(got) != 1 {
			t.Errorf("first keys = %v, want one", got)
		}
		all(func(i *idtoken.Issuer) string { return in.rotate(t, i) })
		var signing int
		if err := in.db.QueryRow(t.Context(), `SELECT count(*) FROM signing_key WHERE replaced IS NULL`).Scan(&signing); err != nil || signing != 1 {
			t.Errorf("keys that sign = %d, %v, want 1", signing, err)
		}
		token, _ := in.sign(t, in.node(), who)
		if _, err := in.node().VerifyToken(t.Context(), token); err != nil {
			t.Error(err)
		}
	})
}

func TestPrivateKeysAreSealed(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, in *installation) {
		in.sign(t, in.node(), someone())
		kid, private := in.key(t)
		var row string
		if err := in.db.QueryRow(t.Context(), `SELECT id || public || private FROM signing_key`).Scan(&row); err != nil {
			t.Fatal(err)
		}
		for _, secret := range [][]byte{private, private.Seed()} {
			for name, form := range map[string]string{
				"raw": string(secret), "hex": fmt.Sprintf("%x", secret),
				"base64":    base64.RawStdEncoding.EncodeToString(secret),
				"base64url": base64.RawURLEncoding.EncodeToString(secret),
			} {
				if strings.Contains(row, form) {
					t.Errorf("the database has the private key in %s", name)
				}
			}
		}
		// Another secret opens nothing, and a sealed key does not fit another row.
		stranger := install(t, "sqlite")
		other := idtoken.New(in.db, idtoken.Options{Box: stranger.box, Issuer: issuer, Lifetime: lifetime, Now: in.now})
		sign := func(i *idtoken.Issuer) error {
			return in.db.Write(t.Context(), func(tx *sqldb.Tx) error { _, _, err := i.SignToken(t.Context(), tx, someone()); return err })
		}
		if err := sign(other); err == nil {
			t.Error("a node with another secret signs")
		}
		err := in.db.Write(t.Context(), func(tx *sqldb.Tx) error {
			_, err := tx.Exec(t.Context(), `UPDATE signing_key SET id = $1 WHERE id = $2`, ids.New(), kid)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := sign(in.node()); err == nil {
			t.Error("a sealed key signs for another row")
		}
	})
}

func TestPublishedKeysVerifyTokens(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, in *installation) {
		node := in.node()
		empty, err := node.MarshalJWKS(t.Context())
		if err != nil || string(empty) != `{"keys":[]}` {
			t.Errorf("without keys = %s, %v", empty, err)
		}
		token, _ := in.sign(t, node, someone())
		document, err := node.MarshalJWKS(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var set jose.JSONWebKeySet
		if err := json.Unmarshal(document, &set); err != nil || len(set.Keys) != 1 {
			t.Fatalf("document = %s, %v", document, err)
		}
		if k := set.Keys[0]; !k.IsPublic() || k.Use != "sig" || k.Algorithm != "EdDSA" || k.KeyID != keyOf(t, token) {
			t.Errorf("key = %+v", k)
		}
		parsed, err := jose.ParseSignedCompact(token, []jose.SignatureAlgorithm{jose.EdDSA})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := parsed.Verify(set.Keys[0]); err != nil {
			t.Errorf("somebody else's library: %v", err)
		}
	})
}

// TestUnknownKeysAskLittle floods a node with key ids that nobody has.
func TestUnknownKeysAskLittle(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, in *installation) {
		here, there, who := in.node(), in.node(), someone()
		_, private, _ := ed25519.GenerateKey(nil)
		flood := func() {
			for range 100 {
				_, err := there.VerifyToken(t.Context(), forge(header(ids.New()), text(honest(who)), private))
				refused(t, "an unknown key", err)
			}
		}
		in.sign(t, here, who)
		flood()
		young, _ := in.sign(t, here, who)
		if _, err := there.VerifyToken(t.Context(), young); err != nil {
			t.Errorf("a key that a flood taught: %v", err)
		}
		in.rotate(t, here)
		young, _ = in.sign(t, here, who)
		_, err := there.VerifyToken(t.Context(), young)
		refused(t, "the flood used up what may be asked", err)
		in.pass(100 * time.Millisecond)
		if _, err := there.VerifyToken(t.Context(), young); err != nil {
			t.Errorf("a new key a moment later: %v", err)
		}
	})
}

// TestWithoutTheDatabase tells a token that cannot be checked from a bad one.
// TestManyAtANewNode: callers whose tokens are good are not taken for strangers
// because they all come before the node has read its keys.
func TestManyAtANewNode(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, in *installation) {
		signer := in.node()
		for _, when := range []string{"cold", "after a rotation"} {
			node := in.node()
			var tokens []string
			for range 64 {
				token, _ := in.sign(t, signer, someone())
				tokens = append(tokens, token)
			}
			if when == "after a rotation" {
				if _, err := node.VerifyToken(t.Context(), tokens[0]); err != nil {
					t.Fatal(err)
				}
				in.rotate(t, signer)
				for i := range tokens {
					tokens[i], _ = in.sign(t, signer, someone())
				}
			}
			var group sync.WaitGroup
			for _, token := range tokens {
				group.Go(func() {
					if _, err := node.VerifyToken(t.Context(), token); err != nil {
						t.Errorf("%s: %v", when, err)
					}
				})
			}
			group.Wait()
		}
	})
}

func TestWithoutTheDatabase(t *testing.T) {
	t.Parallel()
	in := install(t, "sqlite")
	node := in.node()
	token, _ := in.sign(t, node, someone())
	ctx, cancel := context.WithTimeout(t.Context(), 0)
	defer cancel()
	_, err := in.node().VerifyToken(ctx, token)
	if f, ok := errors.AsType[*fault.Error](err); !ok || f.Code != fault.Unavailable {
		t.Errorf("an unknown key = %v, want %s", err, fault.Unavailable)
	}
	if _, err := node.VerifyToken(t.Context(), token); err != nil {
		t.Fatal(err)
	}
	if _, err := node.VerifyToken(ctx, token); err != nil {
		t.Errorf("a known token: %v", err)
	}
	in.pass(2 * time.Minute)
	_, err = node.VerifyToken(ctx, token)
	if f, ok := errors.AsType[*fault.Error](err); !ok || f.Code != fault.Unavailable {
		t.Errorf("a key that was not asked about for long = %v, want %s", err, fault.Unavailable)
	}
}

// keyOf gives the key id of a token.
func keyOf(t *testing.T, token string) string {
	t.Helper()
	parsed, err := jose.ParseSignedCompact(token, []jose.SignatureAlgorithm{jose.EdDSA})
	if err != nil {
		t.Fatal(err)
	}
	return parsed.Signatures[0].Protected.KeyID
}

// published gives the key ids of the document.
func published(t *testing.T, i *idtoken.Issuer) (kids []string) {
	t.Helper()
	document, err := i.MarshalJWKS(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var set jose.JSONWebKeySet
	if err := json.Unmarshal(document, &set); err != nil {
		t.Fatal(err)
	}
	for _, k := range set.Keys {
		kids = append(kids, k.KeyID)
	}
	return kids
}

func BenchmarkVerify(b *testing.B) {
	in := install(b, "sqlite")
	node := in.node()
	token, _ := in.sign(b, node, someone())
	b.Run("remembered", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := node.VerifyToken(b.Context(), token); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("first on a node", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := in.node().VerifyToken(b.Context(), token); err != nil {
				b.Fatal(err)
			}
		}
	})
}
