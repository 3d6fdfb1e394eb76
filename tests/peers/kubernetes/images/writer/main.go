// writer appends a line to /data/log every 50 ms, as a database would: "TIME NODE LIFE". TIME is in nanoseconds; LIFE is another
// one at each start, so that a writer that comes back is told from one that begins.
package main

import (
	"crypto/rand"
	"fmt"
	"log"
	"os"
	"time"
)

func main() {
	file, err := os.OpenFile("/data/log", os.O_APPEND|os.O_CREATE|os.O_WRONLY|os.O_SYNC, 0o644)
	if err != nil {
		log.Fatal(err)
	}
	node, life := os.Getenv("NODE"), rand.Text()
	for range time.Tick(50 * time.Millisecond) {
		if _, err := fmt.Fprintf(file, "%d %s %s\n", time.Now().UnixNano(), node, life); err != nil {
			log.Fatal(err)
		}
	}
}
