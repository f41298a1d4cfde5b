package cellgrpc_test

import (
	"github.com/redis/go-redis/v9"
	"google.golang.org/grpc"

	cellserver "cellserver/adapters/go"
	"cellserver/adapters/go/cellgrpc"
)

func Example() {
	limiter := &cellserver.Limiter{Client: redis.NewClient(cellserver.Options("127.0.0.1:6380"))}
	perClient := cellgrpc.Interceptor{Limiter: limiter, Limit: "visitor", Key: cellgrpc.ByAddress()}
	server := grpc.NewServer(
		grpc.ChainUnaryInterceptor(perClient.Unary()),
		grpc.ChainStreamInterceptor(perClient.Stream()),
	)
	server.Stop()
}
