package rls

import (
	"context"
	"errors"
	"net"

	"google.golang.org/grpc/codes"

	"cellserver/internal/edge/door"
	"cellserver/internal/redis/reply"
)

// requestError is a request's own fault.
type requestError string

func (e requestError) Error() string { return string(e) }

// Errors of requests:
const (
	errNoDomain      requestError = "rate limit domain must not be empty"
	errNoDescriptors requestError = "rate limit descriptor list must not be empty"
	errTooMany       requestError = "more than 128 descriptors; send fewer in a request"
	errManyEntries   requestError = "more than 128 entries in the descriptors together; send fewer in a request"
	errManyFields    requestError = "more than 4096 fields; send none but those of envoy.service.ratelimit.v3.RateLimitRequest"
	errMalformed     requestError = "the message is no envoy.service.ratelimit.v3.RateLimitRequest"
	errUnit          requestError = "the limit of a descriptor must have a unit: SECOND, MINUTE, HOUR, DAY, WEEK, MONTH or YEAR"
	errManyReserved  requestError = "more than 32 limits apply to the descriptors, which a reservation cannot hold; send fewer in a request"
	errSlotsReserved requestError = "the limits of the descriptors are in different slots of the Redis Cluster, which holds no part of them; send one descriptor in a request"
	errExactReserved requestError = "a limit of the descriptors has the algorithm sliding_window, which can hold nothing; use approximate_window"
	errLong          requestError = "the unit_multiplier of a descriptor's limit makes its period longer than 146 years"
)

// errNoRules has the words of envoyproxy/ratelimit.
var errNoRules = errors.New("no rate limit configuration loaded")

// Errors of a request's metadata: another authorization than a token, and none where one is needed.
var (
	errScheme  = errors.New("the metadata authorization must be: Bearer TOKEN; see --http-tokens-file")
	errNoToken = errors.New("send the metadata authorization: Bearer TOKEN, or use a client certificate; see --http-tokens-file")
)

// codeOf returns gRPC's code of an error.
func codeOf(err error) codes.Code {
	var bad requestError
	var answered reply.Error
	var refused *door.RefusedError
	switch {
	case errors.As(err, &bad):
		return codes.InvalidArgument
	case errors.As(err, &answered):
		return codeOfReply(answered)
	case errors.As(err, &refused):
		return codes.PermissionDenied
	case errors.Is(err, door.ErrToken), errors.Is(err, errScheme), errors.Is(err, errNoToken):
		return codes.Unauthenticated
	case errors.Is(err, door.ErrFull):
		return codes.ResourceExhausted
	case errors.Is(err, context.DeadlineExceeded):
		return codes.DeadlineExceeded
	case errors.Is(err, context.Canceled):
		return codes.Canceled
	case errors.Is(err, net.ErrClosed):
		return codes.Unavailable
	}
	return codes.Unknown
}

// crossSlot is the code of a reply that says that a Redis Cluster has the keys in different slots.
const crossSlot = "CROSSSLOT"

func isCrossSlot(err error) bool {
	var answered reply.Error
	return errors.As(err, &answered) && answered.Code() == crossSlot
}

// codeOfReply returns the code for an error reply.
func codeOfReply(err reply.Error) codes.Code {
	if err.IsTooManyNewKeys() {
		return codes.ResourceExhausted
	}
	switch err.Code() {
	case "LOADING", "READONLY", "NOREPLICAS", "STOREDOWN", "MISCONF":
		return codes.Unavailable
	case "OOM", "TOOMANYHOLDS":
		return codes.ResourceExhausted
	case "NOAUTH":
		return codes.Unauthenticated
	case "NOPERM":
		return codes.PermissionDenied
	case "WRONGTYPE", crossSlot:
		return codes.FailedPrecondition
	case "ERR", "Cell":
		return codes.InvalidArgument
	}
	return codes.Unknown
}
