package keyring

import (
	"crypto/aes"
	"crypto/cipher"
	"encoding/base64"
	"errors"
)

// Box encrypts values that are stored in the database, so that they cannot be
// read from a copy of the database alone.
type Box struct{ aead cipher.AEAD }

// BoxFor returns a box with the key that is derived for a purpose.
func (r Ring) BoxFor(purpose string) Box {
	block, err := aes.NewCipher(r.DeriveKey(purpose))
	if err != nil {
		panic(err) // the key has the right length
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		panic(err) // the block has the right size
	}
	return Box{aead}
}

// Seal encrypts plain. about identifies where the value belongs, such as a row:
// Open needs the same value, so that a ciphertext copied to another row cannot
// be decrypted.
func (b Box) Seal(plain []byte, about string) string {
	return base64.RawStdEncoding.EncodeToString(b.aead.Seal(nil, nil, plain, []byte(about)))
}

var errSealed = errors.New("decrypt: the key is wrong or the ciphertext was changed")

// Open decrypts a value that Seal returned for the same about.
func (b Box) Open(sealed, about string) ([]byte, error) {
	raw, err := base64.RawStdEncoding.DecodeString(sealed)
	if err != nil {
		return nil, errSealed
	}
	plain, err := b.aead.Open(nil, nil, raw, []byte(about))
	if err != nil {
		return nil, errSealed
	}
	return plain, nil
}
