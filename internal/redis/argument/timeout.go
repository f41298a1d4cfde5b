package argument

import (
	"math"
	"strconv"

	"cellserver/internal/redis/reply"
)

// Timeout reads a blocking time in seconds with a fraction, and returns nanoseconds; 0 blocks indefinitely.
func Timeout(arg []byte) (ns int64, err error) {
	sec, err := strconv.ParseFloat(string(arg), 64)
	switch {
	case sec < 0 && !math.IsInf(sec, 0):
		return 0, reply.Error("ERR timeout is negative")
	case math.IsInf(sec, 0) || sec > math.MaxInt64/1000: // Redis's milliseconds
		return 0, reply.Error("ERR timeout is out of range")
	case err != nil || math.IsNaN(sec):
		return 0, reply.Error("ERR timeout is not a float or out of range")
	case sec >= math.MaxInt64/1e9:
		return math.MaxInt64, nil
	}
	return int64(math.Ceil(sec * 1e9)), nil
}
