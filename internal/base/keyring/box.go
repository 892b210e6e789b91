package keyring

import (
	"crypto/aes"
	"crypto/cipher"
	"encoding/base64"
	"errors"
)

// Box encrypts values that are stored in the database, so that a copy of the
// database alone does not reveal them.
type Box struct{ aead cipher.AEAD }

// BoxFor returns the box for a purpose.
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

// Seal encrypts plain. about identifies the owner of the value, such as a row:
// Open needs the same about, so a sealed text cannot be moved to another row.
func (b Box) Seal(plain []byte, about string) string {
	return base64.RawStdEncoding.EncodeToString(b.aead.Seal(nil, nil, plain, []byte(about)))
}

var errSealed = errors.New("open sealed text: wrong key or changed text")

// Open decrypts the result of Seal.
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
