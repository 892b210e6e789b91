package idtoken

import (
	"context"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/go-jose/go-jose/v4"

	"atelier/internal/base/fault"
	"atelier/internal/base/ids"
	"atelier/internal/base/sqldb"
)

// rotationGrace is how much longer than Lifetime a replaced key still verifies
// tokens. A transaction that read the key just before the rotation may still
// sign with it, and the clocks of the nodes differ.
const rotationGrace = time.Minute

// signingKey is a signer with the private key that signs ID tokens, and the id
// of the key.
type signingKey struct {
	kid    string
	signer jose.Signer
}

// keySet contains the public keys that could verify tokens when the set was
// read from the database, by key id.
type keySet struct {
	read   time.Time
	public map[string]ed25519.PublicKey
}

// storedKey is a row of the table signing_key.
type storedKey struct {
	kid     string
	public  string // the public key as a JWK
	private string // the seed of the private key, encrypted
}

// sealContext returns the encryption context of a private key, which consists
// of the table and the key id. Decryption needs the same context.
func sealContext(kid string) string { return "signing_key " + kid }

// currentSigner returns a signer with the current key, and creates the key if
// there is none.
func (i *Issuer) currentSigner(ctx context.Context, tx *sqldb.Tx) (jose.Signer, error) {
	k, err := currentKey(ctx, tx)
	if errors.Is(err, sqldb.ErrNoRows) {
		k, err = i.createKey(ctx, tx)
	}
	if err != nil {
		return nil, err
	}
	if s := i.signing.Load(); s != nil && s.kid == k.kid {
		return s.signer, nil
	}
	seed, err := i.o.Box.Open(k.private, sealContext(k.kid))
	if err != nil {
		return nil, fmt.Errorf("signing key %s: %w", k.kid, err)
	}
	if len(seed) != ed25519.SeedSize {
		return nil, fmt.Errorf("signing key %s has an invalid length of %d bytes", k.kid, len(seed))
	}
	signer, err := jose.NewSigner(
		jose.SigningKey{Algorithm: jose.EdDSA, Key: jose.JSONWebKey{Key: ed25519.NewKeyFromSeed(seed), KeyID: k.kid}},
		new(jose.SignerOptions).WithType("JWT"))
	if err != nil {
		return nil, fmt.Errorf("signing key %s: %w", k.kid, err)
	}
	i.signing.Store(&signingKey{k.kid, signer})
	return signer, nil
}

// createKey adds a signing key unless another node adds one first. It returns
// the stored signing key.
func (i *Issuer) createKey(ctx context.Context, tx *sqldb.Tx) (storedKey, error) {
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		return storedKey{}, err
	}
	kid := ids.New()
	jwk, err := json.Marshal(jose.JSONWebKey{Key: public, KeyID: kid, Algorithm: string(jose.EdDSA), Use: "sig"})
	if err != nil {
		return storedKey{}, err
	}
	if err := insertKey(ctx, tx, storedKey{kid, string(jwk), i.o.Box.Seal(private.Seed(), sealContext(kid))}); err != nil {
		return storedKey{}, err
	}
	return currentKey(ctx, tx)
}

// RotateKey replaces the signing key with a new one and returns the new key's
// id. Of several concurrent rotations only one creates a key, and all return
// its id.
func (i *Issuer) RotateKey(ctx context.Context, tx *sqldb.Tx) (kid string, err error) {
	if err := retireKey(ctx, tx); err != nil {
		return "", fmt.Errorf("rotate signing key: %w", err)
	}
	k, err := i.createKey(ctx, tx)
	if err != nil {
		return "", fmt.Errorf("rotate signing key: %w", err)
	}
	return k.kid, nil
}

// DeleteExpiredKeys deletes replaced keys whose last token expired at least one
// token lifetime ago.
func (i *Issuer) DeleteExpiredKeys(ctx context.Context, tx *sqldb.Tx) error {
	return deleteReplaced(ctx, tx, tx.Now.Add(-2*i.o.Lifetime-rotationGrace))
}

// MarshalJWKS returns the JSON Web Key Set of the keys that can still verify
// tokens (RFC 7517 section 5). It reads the database at each call, because
// verifiers fetch the set as soon as they see a new key id.
func (i *Issuer) MarshalJWKS(ctx context.Context) ([]byte, error) {
	keys, err := i.verifyingKeys(ctx)
	if err != nil {
		return nil, err
	}
	document := struct {
		Keys []json.RawMessage `json:"keys"`
	}{[]json.RawMessage{}}
	for _, k := range keys {
		document.Keys = append(document.Keys, json.RawMessage(k.public))
	}
	return json.Marshal(document)
}

// publicKey returns the public key with the given id. Of several concurrent
// calls for a key that is not cached, one queries the database and the others
// wait for its result or error, so that they do not fail one after the other
// while the database hangs. Queries for unknown key ids are rate-limited. Each
// query reads all keys, so that a flood of unknown ids cannot prevent a node
// from loading a new key.
func (i *Issuer) publicKey(ctx context.Context, kid string) (ed25519.PublicKey, error) {
	// A query that a concurrent call started may have read the keys before this
	// key was created, so a shared result is followed by a second query.
	for range 2 {
		if k, ok := i.cachedKey(kid); ok {
			return k, nil
		}
		set, shared, err := i.lookUpKeys(ctx, kid)
		if err != nil {
			return nil, err
		}
		if k, ok := set.public[kid]; ok {
			return k, nil
		}
		if !shared {
			break
		}
	}
	return nil, errInvalid
}

// lookUpKeys reads all keys with one query for all concurrent calls, and
// reports whether the result was shared with another call. The query does not
// use the context of a single request, so it is not cancelled when one client
// disconnects.
func (i *Issuer) lookUpKeys(ctx context.Context, kid string) (set *keySet, shared bool, err error) {
	if ctx.Err() != nil {
		return nil, false, errTimeout(ctx)
	}
	name := "known"
	if _, known := i.known.Load().public[kid]; !known {
		name = "strange"
	}
	answer := i.looking.DoChan(name, func() (any, error) {
		if name == "strange" && !i.lookups.AllowN(i.o.Now(), 1) {
			return nil, errInvalid
		}
		return i.loadKeys(context.WithoutCancel(ctx))
	})

	select {
	case one := <-answer:
		if one.Err != nil {
			return nil, one.Shared, one.Err
		}
		return one.Val.(*keySet), one.Shared, nil
	case <-ctx.Done():
		return nil, false, errTimeout(ctx)
	}
}

func errTimeout(ctx context.Context) error {
	return fault.New(fault.Unavailable, "The signing keys of the service could not be read in time. Try again.").Because(ctx.Err())
}

// loadKeys reads the public keys that can still verify tokens from the
// database.
func (i *Issuer) loadKeys(ctx context.Context) (*keySet, error) {
	set := &keySet{i.o.Now(), map[string]ed25519.PublicKey{}}
	keys, err := i.verifyingKeys(ctx)
	if err != nil {
		return nil, err
	}
	for _, k := range keys {
		var jwk jose.JSONWebKey
		if err := json.Unmarshal([]byte(k.public), &jwk); err != nil {
			return nil, fmt.Errorf("signing key %s: %w", k.kid, err)
		}
		public, ok := jwk.Key.(ed25519.PublicKey)
		if !ok {
			return nil, fmt.Errorf("signing key %s has the unexpected type %T", k.kid, jwk.Key)
		}
		set.public[k.kid] = public
	}
	i.known.Store(set)
	return set, nil
}

// cachedKey returns the public key with the given id if the keys were read at
// most keyCacheTime ago.
func (i *Issuer) cachedKey(kid string) (ed25519.PublicKey, bool) {
	set := i.known.Load()
	k, known := set.public[kid]
	return k, known && i.o.Now().Before(set.read.Add(keyCacheTime))
}

// verifyingKeys returns the stored keys that can still verify tokens, newest
// first.
func (i *Issuer) verifyingKeys(ctx context.Context) (keys []storedKey, err error) {
	err = i.db.Read(ctx, func(tx *sqldb.Tx) (err error) {
		keys, err = replacedAfter(ctx, tx, tx.Now.Add(-i.o.Lifetime-rotationGrace))
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read signing keys: %w", err)
	}
	return keys, nil
}
