package main

import (
	"encoding/json"
	"log"
	"os"
	"time"
)

// journal is a file to which whatever is done is appended as a line of JSON. Several processes write to it, each line at once.
type journal string

type line struct {
	At     int64  `json:"at"`
	What   string `json:"what"`
	Volume string `json:"volume"`
	Node   string `json:"node"`
}

func (j journal) note(what, volume, node string) {
	text, err := json.Marshal(line{time.Now().UnixNano(), what, volume, node})
	if err != nil {
		log.Fatal(err)
	}
	f, err := os.OpenFile(string(j), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		log.Fatal(err)
	}
	defer f.Close()
	if _, err := f.Write(append(text, '\n')); err != nil {
		log.Fatal(err)
	}
}
