package peer

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials/insecure"

	"cellserver/bench/internal/control"
	"cellserver/bench/internal/load"
	"cellserver/internal/edge/rls/rlspb"
	"cellserver/internal/test/patience"
)

// ShouldRateLimit is a call of Envoy's rate limit service with a descriptor of one entry, by grpc-go.
func ShouldRateLimit() load.Command {
	return load.LibraryCommand(dialRateLimit, "ShouldRateLimit "+control.Entry+"=u:"+load.KeyMark)
}

// dialRateLimit makes a connection of its own.
func dialRateLimit(addr netip.AddrPort, timeout time.Duration) (newCaller func() load.Call, hangUp func(), err error) {
	cc, err := grpc.NewClient("passthrough:///"+addr.String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return nil, nil, err
	}
	hangUp = func() { _ = cc.Close() }
	if err := awaitReady(cc, timeout); err != nil {
		hangUp()
		return nil, nil, err
	}
	return func() load.Call { return rateLimitCall(cc, timeout) }, hangUp, nil
}

func awaitReady(cc *grpc.ClientConn, timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	cc.Connect()
	for {
		switch state := cc.GetState(); {
		case state == connectivity.Ready:
			return nil
		case state == connectivity.TransientFailure:
			return errors.New("no connection of gRPC")
		case !cc.WaitForStateChange(ctx, state):
			return fmt.Errorf("no connection of gRPC in %s", timeout)
		}
	}
}

// rateLimitCall has a deadline, as Envoy's calls do.
func rateLimitCall(cc *grpc.ClientConn, timeout time.Duration) load.Call {
	user := &rlspb.RateLimitDescriptor_Entry{Key: control.Entry}
	request := &rlspb.RateLimitRequest{Domain: control.Domain, Descriptors: []*rlspb.RateLimitDescriptor{
		{Entries: []*rlspb.RateLimitDescriptor_Entry{user}},
	}}
	response := &rlspb.RateLimitResponse{}
	return func(ctx context.Context, key uint64) (limited bool, err error) {
		ctx, cancel := context.WithTimeout(ctx, timeout)
		defer cancel()
		user.Value = fmt.Sprintf("u:%0*d", load.KeyDigits, key)
		if err := cc.Invoke(ctx, control.ShouldRateLimit, request, response); err != nil {
			return false, err
		}
		return response.GetOverallCode() == rlspb.RateLimitResponse_OVER_LIMIT, nil
	}
}

// awaitLimits waits until a call is answered, for a server that first has to get its limits.
func awaitLimits(ctx context.Context, addr netip.AddrPort) error {
	const timeout = time.Minute
	newCaller, hangUp, err := dialRateLimit(addr, timeout)
	if err != nil {
		return err
	}
	defer hangUp()
	if call := newCaller(); !patience.Until(func() bool {
		_, err = call(ctx, 0)
		return err == nil || ctx.Err() != nil
	}) || err != nil {
		return fmt.Errorf("peer: no limits over xDS: %w", err)
	}
	return nil
}
