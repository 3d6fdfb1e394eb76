"""A foreign client of the gateway: grpcio, which other people wrote, and nothing of Picket's sources.

What calls there are and what their messages hold it learns from the gateway's reflection alone.

    foreign.py [--ca FILE --certificate FILE --key FILE] TARGET services
    foreign.py [...] TARGET files                  # the proto files behind the fencing service
    foreign.py [...] TARGET health [SERVICE]
    foreign.py [...] TARGET call METHOD JSON       # JSON as proto3 has it

Prints a line of JSON for each answer; an error ends them as {"error": {"code", "message", "details": [...]}}, with the
details of google.rpc.Status taken apart.
"""

import argparse
import json
import sys

import grpc
from google.protobuf import descriptor_pool, json_format, message_factory
from google.rpc import error_details_pb2, status_pb2  # registers what details may be
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase

SERVICE = "picket.v1.FencingService"
SECONDS = 60


def channel(options):
    if options.ca is None:
        # By itself grpcio names the socket's path there, which no host name is (RFC 9113, 8.3.1); h2 refuses that.
        return grpc.insecure_channel(options.target, [("grpc.default_authority", "localhost")])
    content = lambda path: open(path, "rb").read()
    trusted = grpc.ssl_channel_credentials(content(options.ca), content(options.key), content(options.certificate))
    return grpc.secure_channel(options.target, trusted)


def tell(value):
    print(json.dumps(value), flush=True)


def plain(message, pool):
    return json_format.MessageToDict(message, preserving_proto_field_name=True, descriptor_pool=pool)


def error_of(failure):
    told = {"code": failure.code().name, "message": failure.details(), "details": []}
    for key, value in failure.trailing_metadata() or ():
        if key == "grpc-status-details-bin":
            status = status_pb2.Status.FromString(value)
            told["status"] = {"code": status.code, "message": status.message}
            told["details"] = [json_format.MessageToDict(detail, preserving_proto_field_name=True) for detail in status.details]
    return {"error": told}


def call(opened, database, method, text):
    pool = descriptor_pool.DescriptorPool(database)
    found = pool.FindServiceByName(SERVICE).FindMethodByName(method)
    request = json_format.Parse(text, message_factory.GetMessageClass(found.input_type)(), descriptor_pool=pool)
    path = f"/{SERVICE}/{method}"
    shape = opened.unary_stream if found.server_streaming else opened.unary_unary
    ask = shape(
        path,
        request_serializer=lambda message: message.SerializeToString(),
        response_deserializer=message_factory.GetMessageClass(found.output_type).FromString,
    )
    answers = ask(request, timeout=SECONDS)
    for answer in answers if found.server_streaming else [answers]:
        tell(plain(answer, pool))


def main():
    words = argparse.ArgumentParser()
    for name in ("--ca", "--certificate", "--key"):
        words.add_argument(name)
    words.add_argument("target")
    words.add_argument("what", choices=["services", "files", "health", "call"])
    words.add_argument("rest", nargs="*")
    options = words.parse_args()
    with channel(options) as opened:
        try:
            database = ProtoReflectionDescriptorDatabase(opened)
            if options.what == "services":
                tell(sorted(database.get_services()))
            elif options.what == "files":
                pool = descriptor_pool.DescriptorPool(database)
                service = pool.FindServiceByName(SERVICE)
                tell({"file": service.file.name, "calls": [method.name for method in service.methods]})
            elif options.what == "health":
                request = health_pb2.HealthCheckRequest(service="".join(options.rest))
                answer = health_pb2_grpc.HealthStub(opened).Check(request, timeout=SECONDS)
                tell(health_pb2.HealthCheckResponse.ServingStatus.Name(answer.status))
            else:
                call(opened, database, *options.rest)
        except grpc.RpcError as failure:
            tell(error_of(failure))
            return 1
    return 0


sys.exit(main())
