/* Chassis control inside ipmi_sim, without a process for each command: for farms of hundreds, and for races.
 *
 *   lan.conf:  loadlib "/path/fastpower.so" "DIR"
 *
 * DIR/power holds '0' or '1'. Knobs, files in DIR:
 *   off_delay   seconds between the acknowledgement and the fall
 *   ignore_off  the off is acknowledged and nothing happens
 *   lie_off     the off is acknowledged, nothing happens, and from then on it says off
 *   fail        commands fail
 * What it was told stands in DIR/commands.log, a line each: the time in seconds, and off or on.
 */
#include <OpenIPMI/mcserv.h>
#include <OpenIPMI/serv.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

static sys_data_t *simulator;
static ipmi_timer_t *fall;
static char directory[512];
static int state = -1;
static int commands = -1;
static int lied;

/* Whether the knob is there; if so its number, 1 where it says none. */
static int knob(const char *name, double *value)
{
    char path[600], text[32] = "";
    snprintf(path, sizeof path, "%s/%s", directory, name);
    int fd = open(path, O_RDONLY);
    if (fd < 0)
        return 0;
    ssize_t n = read(fd, text, sizeof text - 1);
    close(fd);
    *value = n > 0 ? atof(text) : 1;
    return 1;
}

static int write_power(char digit)
{
    return pwrite(state, &digit, 1, 0) == 1 ? 0 : EIO;
}

static void note(const char *what)
{
    struct timeval now;
    gettimeofday(&now, NULL);
    dprintf(commands, "%ld.%06ld %s\n", (long)now.tv_sec, (long)now.tv_usec, what);
}

static void on_fall(void *unused)
{
    (void)unused;
    write_power('0');
}

static int commanded_off(void)
{
    double value;
    if (knob("ignore_off", &value))
        return 0;
    if (knob("lie_off", &value)) {
        lied = 1;
        return 0;
    }
    if (!knob("off_delay", &value))
        return write_power('0');
    struct timeval delay = {(long)value, (long)(value * 1e6) % 1000000};
    if (!fall && simulator->alloc_timer(simulator, on_fall, NULL, &fall))
        return ENOMEM;
    return simulator->start_timer(fall, &delay);
}

static int control(lmc_data_t *mc, int operation, unsigned char *value, void *data)
{
    double ignored;
    (void)mc, (void)data;
    if (knob("fail", &ignored))
        return EIO;
    switch (operation) {
    case CHASSIS_CONTROL_POWER:
        note(*value ? "on" : "off");
        if (!*value)
            return commanded_off();
        lied = 0;
        return write_power('1');
    case CHASSIS_CONTROL_GRACEFUL_SHUTDOWN:
        return write_power('0');
    default:
        return 0;
    }
}

static int status(lmc_data_t *mc, int operation, unsigned char *value, void *data)
{
    char digit;
    (void)mc, (void)data;
    *value = 0;
    if (operation != CHASSIS_CONTROL_POWER)
        return 0;
    if (pread(state, &digit, 1, 0) != 1)
        return EIO;
    *value = digit == '1' && !lied;
    return 0;
}

int ipmi_sim_module_print_version(sys_data_t *sys, char *options)
{
    (void)sys, (void)options;
    puts("fastpower 1");
    return 0;
}

int ipmi_sim_module_init(sys_data_t *sys, const char *options)
{
    char path[600];
    simulator = sys;
    snprintf(directory, sizeof directory, "%s", options);
    snprintf(path, sizeof path, "%s/power", directory);
    state = open(path, O_RDWR | O_CREAT, 0644);
    snprintf(path, sizeof path, "%s/commands.log", directory);
    commands = open(path, O_WRONLY | O_CREAT | O_APPEND, 0644);
    return state < 0 || commands < 0 ? errno : 0;
}

int ipmi_sim_module_post_init(sys_data_t *sys)
{
    for (int address = 0; address < IPMI_MAX_MCS; address++)
        if (sys->ipmb_addrs[address])
            ipmi_mc_set_chassis_control_func(sys->ipmb_addrs[address], control, status, NULL);
    return 0;
}
