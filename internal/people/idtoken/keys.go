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

// rotationGrace is how much longer than Lifetime a replaced key verifies: a
// transaction that read it just before may still sign with it, and clocks of
// nodes differ.
const rotationGrace = time.Minute

// signingKey signs.
type signingKey struct {
	kid    string
	signer jose.Signer
}

// keySet are the keys that verified something when they were read.
type keySet struct {
	read   time.Time
	public map[string]ed25519.PublicKey
}

// storedKey is a key as its row has it.
type storedKey struct {
	kid     string
	public  string // JWK
	private string // the seed, sealed
}

// sealContext names the row to which a sealed private key belongs.
func sealContext(kid string) string { return "signing_key " + kid }

// currentSigner returns the current key, and makes it where there is none.
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
		return nil, fmt.Errorf("signing key %s: has %d bytes", k.kid, len(seed))
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

// createKey adds a key that signs, unless another node is quicker, and returns the
// one that came to be.
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

// RotateKey has a new key sign from now on. Of several rotations at once one
// counts, and all give its key.
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

// DeleteExpiredKeys deletes keys whose tokens expired long ago.
func (i *Issuer) DeleteExpiredKeys(ctx context.Context, tx *sqldb.Tx) error {
	return deleteReplaced(ctx, tx, tx.Now.Add(-2*i.o.Lifetime-rotationGrace))
}

// MarshalJWKS is the document with the keys that can still verify something (RFC 7517
// section 5), read afresh: a verifier that meets a new key id asks at once.
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

// publicKey returns a public key. Of many who miss one at once one asks the database,
// and the others take what it found or share its failure: while the database
// hangs, nobody waits for others to fail first. What strangers send makes it ask
// only so often; each time it learns all keys, so that they cannot keep a node
// from learning a new one.
func (i *Issuer) publicKey(ctx context.Context, kid string) (ed25519.PublicKey, error) {
	// A look that others began may be older than the key; the next one is not.
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

// lookUpKeys reads the keys, once for all who want to at that time, and tells whether
// there were others. It is no request's own, so nobody calls it off by leaving.
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
	return fault.New(fault.Unavailable, "The keys of the service could not be read in time. Try again.").Because(ctx.Err())
}

// loadKeys reads the keys that verify.
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
			return nil, fmt.Errorf("signing key %s: is a %T", k.kid, jwk.Key)
		}
		set.public[k.kid] = public
	}
	i.known.Store(set)
	return set, nil
}

// cachedKey returns a key that was read a short while ago.
func (i *Issuer) cachedKey(kid string) (ed25519.PublicKey, bool) {
	set := i.known.Load()
	k, known := set.public[kid]
	return k, known && i.o.Now().Before(set.read.Add(keyCacheTime))
}

// verifyingKeys reads the keys that can still verify something, newest first.
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
