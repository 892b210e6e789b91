package keyring

import (
	"crypto/aes"
	"crypto/cipher"
	"encoding/base64"
	"errors"
)

// Box seals what must be kept and read again, so that a copy of the database
// alone does not give it away.
type Box struct{ aead cipher.AEAD }

// Box makes the box for a purpose.
func (r Ring) Box(purpose string) Box {
	block, err := aes.NewCipher(r.Key(purpose))
	if err != nil {
		panic(err) // the key has the right length
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		panic(err) // the block has the right size
	}
	return Box{aead}
}

// Seal hides plain. about names what it belongs to, a row for instance: a
// sealed text opens for the same about only, so that it cannot be moved.
func (b Box) Seal(plain []byte, about string) string {
	return base64.RawStdEncoding.EncodeToString(b.aead.Seal(nil, nil, plain, []byte(about)))
}

var errSealed = errors.New("open sealed text: it is not ours or was changed")

// Open gives what Seal hid.
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
