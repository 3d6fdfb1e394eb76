"""What a prepared folder holds besides databases.

Users: admin/admin-secret, of the projects admin and tenant, with the role admin; tenant/tenant-secret, of the project tenant, with
the role member. A flavor, small, and an image, system.
"""
from services import PORTS


def connect(address):
    import openstack
    return openstack.connect(auth_url=f"http://{address}:{PORTS['identity']}/v3", username="admin", password="admin-secret",
                             project_name="admin", user_domain_id="default", project_domain_id="default",
                             region_name="RegionOne")


def people(cloud, nowhere):
    identity = cloud.identity
    project = identity.create_project(name="service", domain_id="default")
    roles = {name: identity.find_role(name) for name in ("admin", "member", "service")}
    for name in ("nova", "cinder", "glance", "placement", "neutron"):
        user = identity.create_user(name=name, password="service-secret", domain_id="default")
        identity.assign_project_role_to_user(project, user, roles["admin"])
        identity.assign_project_role_to_user(project, user, roles["service"])
    where = {"nova": ("compute", "compute", "/v2.1"), "placement": ("placement", "placement", ""), "glance": ("image", "images", ""),
             "neutron": ("network", "network", ""), "cinder": ("block-storage", "volumes", "/v3/%(project_id)s")}
    for name, (kind, port, path) in where.items():
        service = identity.create_service(name=name, type=kind)
        for interface in ("public", "internal", "admin"):
            url = f"http://{nowhere}:{PORTS[port]}{path}"
            identity.create_endpoint(service_id=service.id, interface=interface, url=url, region_id="RegionOne")
    tenant = identity.create_project(name="tenant", domain_id="default")
    user = identity.create_user(name="tenant", password="tenant-secret", domain_id="default")
    identity.assign_project_role_to_user(tenant, user, roles["member"])
    identity.assign_project_role_to_user(tenant, identity.find_user("admin"), roles["admin"])


def things(cloud, _nowhere):
    cloud.compute.create_flavor(name="small", ram=64, vcpus=1, disk=0)
    cloud.image.create_image(name="system", data=b"nothing", disk_format="raw", container_format="bare", visibility="public",
                             wait=True, validate_checksum=False)
