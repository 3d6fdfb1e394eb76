#!/usr/bin/env python3
"""Asks one member of etcd whether it leads: prints "leads", "follows", or "alone" where it knows of no leader.

usage: etcd_leads.py URL"""

import json
import sys
import urllib.request


def main():
    request = urllib.request.Request(sys.argv[1] + "/v3/maintenance/status", data=b"{}")
    # Nobody's proxy: it stands in a network of its own.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(request, timeout=1) as answer:
        status = json.load(answer)
    leader = status.get("leader", "0")
    print("alone" if leader == "0" else "leads" if leader == status["header"]["member_id"] else "follows")


if __name__ == "__main__":
    main()
