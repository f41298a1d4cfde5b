package value

import (
	"encoding/binary"
	"encoding/hex"

	"github.com/zeebo/xxh3"
)

// DigestBytes is the length of a digest.
const DigestBytes = 16

// Digest returns a text's XXH3 hash of 64 bits in hexadecimal, as DIGEST replies it.
func Digest(text []byte) (digest [DigestBytes]byte) {
	var sum [8]byte
	binary.BigEndian.PutUint64(sum[:], xxh3.Hash(text))
	hex.Encode(digest[:], sum[:])
	return digest
}
