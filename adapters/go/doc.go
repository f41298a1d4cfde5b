// Package cellserver limits rates in Go by a cellserver. It asks for decisions of named limits
// (CL.CHECK), whose numbers operators change without a deploy, and holds units of budgets for costs that are
// known only afterwards (CL.MRESERVE).
//
// A [Limiter] answers Allow, Wait and Hold. A [Middleware] limits an http.Handler by it, and tells
// clients what is left in the fields RateLimit-Policy, RateLimit and Retry-After. Package cellgrpc, a
// module of its own, has interceptors for gRPC.
//
// While no server decides, a Limiter decides by its [OnError], except for mistakes such as an unknown
// limit: these are returned, as [ErrMisconfigured]. [Options] and [FailoverOptions] bound the wait.
//
// Limiters, Holds and Middleware are safe for concurrent use, with fields that are set before the first
// call. A Reservation is for one goroutine.
package cellserver
