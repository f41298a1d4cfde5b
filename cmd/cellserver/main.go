// Command cellserver is a rate limiter that speaks the Redis protocol and answers CL.THROTTLE as the redis-cell
// module does.
package main

import "os"

func main() { os.Exit(programMain()) }
