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

// handover is how much longer than Lifetime a replaced key verifies: a
// transaction that read it just before may still sign with it, and clocks of
// nodes differ.
const handover = time.Minute

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

// stored is a key as its row has it.
type stored struct {
	kid     string
	public  string // JWK
	private string // the seed, sealed
}

// about names the row to which a sealed private key belongs.
func about(kid string) string { return "signing_key " + kid }

// signer gives the current key, and makes it where there is none.
func (i *Issuer) signer(ctx context.Context, tx *sqldb.Tx) (jose.Signer, error) {
	k, err := current(ctx, tx)
	if errors.Is(err, sqldb.ErrNoRows) {
		k, err = i.create(ctx, tx)
	}
	if err != nil {
		return nil, err
	}
	if s := i.signing.Load(); s != nil && s.kid == k.kid {
		return s.signer, nil
	}
	seed, err := i.o.Box.Open(k.private, about(k.kid))
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

// create adds a key that signs, unless another node is quicker, and gives the
// one that came to be.
func (i *Issuer) create(ctx context.Context, tx *sqldb.Tx) (stored, error) {
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		return stored{}, err
	}
	kid := ids.New()
	jwk, err := json.Marshal(jose.JSONWebKey{Key: public, KeyID: kid, Algorithm: string(jose.EdDSA), Use: "sig"})
	if err != nil {
		return stored{}, err
	}
	if err := insert(ctx, tx, stored{kid, string(jwk), i.o.Box.Seal(private.Seed(), about(kid))}); err != nil {
		return stored{}, err
	}
	return current(ctx, tx)
}

// Rotate has a new key sign from now on. Of several rotations at once one
// counts, and all give its key.
func (i *Issuer) Rotate(ctx context.Context, tx *sqldb.Tx) (kid string, err error) {
	if err := retire(ctx, tx); err != nil {
		return "", fmt.Errorf("rotate signing key: %w", err)
	}
	k, err := i.create(ctx, tx)
	if err != nil {
		return "", fmt.Errorf("rotate signing key: %w", err)
	}
	return k.kid, nil
}

// Sweep deletes keys whose tokens expired long ago.
func (i *Issuer) Sweep(ctx context.Context, tx *sqldb.Tx) error {
	return deleteReplaced(ctx, tx, tx.Now.Add(-2*i.o.Lifetime-handover))
}

// JWKS is the document with the keys that can still verify something (RFC 7517
// section 5), read afresh: a verifier that meets a new key id asks at once.
func (i *Issuer) JWKS(ctx context.Context) ([]byte, error) {
	keys, err := i.verifying(ctx)
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

// key finds a public key. Of many who miss one at once one asks the database,
// and the others take what it found or share its failure: while the database
// hangs, nobody waits for others to fail first. What strangers send makes it ask
// only so often; each time it learns all keys, so that they cannot keep a node
// from learning a new one.
func (i *Issuer) key(ctx context.Context, kid string) (ed25519.PublicKey, error) {
	// A look that others began may be older than the key; the next one is not.
	for range 2 {
		if k, ok := i.trust(kid); ok {
			return k, nil
		}
		set, shared, err := i.look(ctx, kid)
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

// look reads the keys, once for all who want to at that time, and tells whether
// there were others. It is no request's own, so nobody calls it off by leaving.
func (i *Issuer) look(ctx context.Context, kid string) (set *keySet, shared bool, err error) {
	if ctx.Err() != nil {
		return nil, false, outOfTime(ctx)
	}
	name := "known"
	if _, known := i.known.Load().public[kid]; !known {
		name = "strange"
	}
	answer := i.looking.DoChan(name, func() (any, error) {
		if name == "strange" && !i.lookups.AllowN(i.o.Now(), 1) {
			return nil, errInvalid
		}
		return i.learn(context.WithoutCancel(ctx))
	})

	select {
	case one := <-answer:
		if one.Err != nil {
			return nil, one.Shared, one.Err
		}
		return one.Val.(*keySet), one.Shared, nil
	case <-ctx.Done():
		return nil, false, outOfTime(ctx)
	}
}

func outOfTime(ctx context.Context) error {
	return fault.New(fault.Unavailable, "The keys of the service could not be read in time. Try again.").Because(ctx.Err())
}

// learn reads the keys that verify.
func (i *Issuer) learn(ctx context.Context) (*keySet, error) {
	set := &keySet{i.o.Now(), map[string]ed25519.PublicKey{}}
	keys, err := i.verifying(ctx)
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

// trust finds a key that was read a short while ago.
func (i *Issuer) trust(kid string) (ed25519.PublicKey, bool) {
	set := i.known.Load()
	k, known := set.public[kid]
	return k, known && i.o.Now().Before(set.read.Add(trusted))
}

// verifying reads the keys that can still verify something, newest first.
func (i *Issuer) verifying(ctx context.Context) (keys []stored, err error) {
	err = i.db.Read(ctx, func(tx *sqldb.Tx) (err error) {
		keys, err = replacedAfter(ctx, tx, tx.Now.Add(-i.o.Lifetime-handover))
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read signing keys: %w", err)
	}
	return keys, nil
}
