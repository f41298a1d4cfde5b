package rls

import (
	"context"
	"errors"
	"net"
	"slices"

	"connectrpc.com/connect"

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
	errUnit          requestError = "the limit of a descriptor must have a unit: SECOND, MINUTE, HOUR, DAY, MONTH or YEAR"
	errLong          requestError = "the unit_multiplier of a descriptor's limit makes its period longer than 146 years"
)

// Errors of a request's metadata: another authorization than a token, and none where one is needed.
var (
	errScheme  = errors.New("the metadata authorization must be: Bearer TOKEN; see --http-tokens-file")
	errNoToken = errors.New("send the metadata authorization: Bearer TOKEN, or use a client certificate; see --http-tokens-file")
)

// errorOf returns an error with gRPC's code.
func errorOf(err error) error { return connect.NewError(codeOf(err), err) }

func codeOf(err error) connect.Code {
	var bad requestError
	var answered reply.Error
	var refused *door.RefusedError
	switch {
	case errors.As(err, &bad):
		return connect.CodeInvalidArgument
	case errors.As(err, &answered):
		return codeOfReply(answered)
	case errors.As(err, &refused):
		return connect.CodePermissionDenied
	case errors.Is(err, door.ErrToken), errors.Is(err, errScheme), errors.Is(err, errNoToken):
		return connect.CodeUnauthenticated
	case errors.Is(err, door.ErrFull):
		return connect.CodeResourceExhausted
	case errors.Is(err, context.DeadlineExceeded):
		return connect.CodeDeadlineExceeded
	case errors.Is(err, context.Canceled):
		return connect.CodeCanceled
	case errors.Is(err, net.ErrClosed):
		return connect.CodeUnavailable
	}
	return connect.CodeUnknown
}

// codeOfReply returns the code for an error reply.
func codeOfReply(err reply.Error) connect.Code {
	if err.IsTooManyNewKeys() {
		return connect.CodeResourceExhausted
	}
	switch err.Code() {
	case "LOADING", "READONLY", "NOREPLICAS", "STOREDOWN", "MISCONF":
		return connect.CodeUnavailable
	case "OOM":
		return connect.CodeResourceExhausted
	case "NOAUTH":
		return connect.CodeUnauthenticated
	case "NOPERM":
		return connect.CodePermissionDenied
	case "WRONGTYPE":
		return connect.CodeFailedPrecondition
	case "ERR", "Cell":
		return connect.CodeInvalidArgument
	}
	return connect.CodeUnknown
}

// outcomeOf returns how an error counts.
func outcomeOf(err error) door.Outcome {
	refusals := []connect.Code{connect.CodeInvalidArgument, connect.CodePermissionDenied, connect.CodeUnauthenticated, connect.CodeFailedPrecondition}
	if slices.Contains(refusals, codeOf(err)) {
		return door.Refused
	}
	return door.Failed
}
