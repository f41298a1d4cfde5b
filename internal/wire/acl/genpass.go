package acl

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
)

const (
	// DefaultPasswordBits is the default of ACL GENPASS.
	DefaultPasswordBits = 256
	maxPasswordBits     = 4096
)

// GeneratePassword returns random hexadecimal digits with at least the given number of bits.
func GeneratePassword(bits int) (string, error) {
	if bits < 1 || bits > maxPasswordBits {
		return "", errors.New("ACL GENPASS argument must be the number of bits for the output password, a positive " +
			"number up to 4096")
	}
	digits := (bits + 3) / 4
	secret := make([]byte, (digits+1)/2)
	rand.Read(secret) // never fails
	return hex.EncodeToString(secret)[:digits], nil
}
