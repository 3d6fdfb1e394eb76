/* Teaches ipmi_sim what a BMC needs to be told to stay off, after the IPMI 2.0 specification:
 *
 *   chassis  0x06 Set Power Restore Policy (28.8)       0x0A Set Front Panel Button Enables (28.6)
 *            0x07 Get System Restart Cause (28.11)      0x0F Get POH Counter (28.14)
 *            0x01 Get Chassis Status (28.2): its answer, with the policy and the buttons in it
 *   app      0x22 Reset, 0x24 Set, 0x25 Get Watchdog Timer (27.5 to 27.7): ipmi_sim's own answers are too long and too
 *            short, and its timer has nothing to act on. This one acts: it powers down, cycles or resets.
 *
 *   lan.conf:  loadlib "/path/holdmod.so" "DIR"
 *
 * DIR/hold is the state, a "name number" a line, read at each command (so that a test may change it) and written back when
 * a command changed it. It outlives the simulator, as a BMC's non-volatile memory does; a running watchdog does not.
 * DIR/hold.log has each command that changed something, with its time in seconds.
 * Knobs in DIR: no_policy, no_buttons, no_watchdog: these commands are not supported after all (0xC1).
 */
#include <OpenIPMI/mcserv.h>
#include <OpenIPMI/serv.h>

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

/* ipmi_sim's own tables of commands: not in its headers, yet exported, and with the same type in all its versions, unlike
 * the function that fills them. */
extern cmd_handler_f chassis_netfn_handlers[256];
extern cmd_handler_f app_netfn_handlers[256];

enum {
    CHASSIS_STATUS = 0x01, CHASSIS_CONTROL = 0x02, RESTORE_POLICY = 0x06, RESTART_CAUSE = 0x07, BUTTONS = 0x0A, POH = 0x0F,
    WATCHDOG_RESET = 0x22, WATCHDOG_SET = 0x24, WATCHDOG_GET = 0x25,
};
enum { OK = 0x00, NEVER_SET = 0x80, UNSUPPORTED = 0xC1, BAD_LENGTH = 0xC7, BAD_FIELD = 0xCC };

static struct {
    int policy;              /* 0 always off, 1 as before, 2 always on */
    int buttons;             /* bit 0: power button locked; 1 reset, 2 diagnostic, 3 sleep */
    int restart_cause;       /* 28.11: 0 unknown, 1 chassis control, 3 power button, 4 watchdog, 6 restore policy ... */
    int poh;                 /* counts of an hour */
    int watchdog_set;        /* whether anybody ever set it */
    int watchdog_use, watchdog_action, watchdog_pretimeout, watchdog_expired;
    int watchdog_countdown;  /* in tenths of a second */
} hold;

static const struct { const char *name; int *value; } fields[] = {
    {"policy", &hold.policy},
    {"buttons", &hold.buttons},
    {"restart_cause", &hold.restart_cause},
    {"poh", &hold.poh},
    {"watchdog_set", &hold.watchdog_set},
    {"watchdog_use", &hold.watchdog_use},
    {"watchdog_action", &hold.watchdog_action},
    {"watchdog_pretimeout", &hold.watchdog_pretimeout},
    {"watchdog_expired", &hold.watchdog_expired},
    {"watchdog_countdown", &hold.watchdog_countdown},
};
#define FIELDS (sizeof fields / sizeof *fields)

static sys_data_t *simulator;
static lmc_data_t *controller;
static char directory[512];
static cmd_handler_f plain_status, plain_control;
static ipmi_timer_t *watchdog, *power_up;
static int running;
static struct timeval expiry;

static void load(void)
{
    char path[600], name[64];
    int number;
    snprintf(path, sizeof path, "%s/hold", directory);
    FILE *file = fopen(path, "r");
    if (!file)
        return;
    while (fscanf(file, "%63s %i", name, &number) == 2)
        for (size_t i = 0; i < FIELDS; i++)
            if (!strcmp(name, fields[i].name))
                *fields[i].value = number;
    fclose(file);
}

static void save(void)
{
    char path[600], fresh[620];
    snprintf(path, sizeof path, "%s/hold", directory);
    snprintf(fresh, sizeof fresh, "%s.new", path);
    FILE *file = fopen(fresh, "w");
    if (!file)
        return;
    for (size_t i = 0; i < FIELDS; i++)
        fprintf(file, "%s %d\n", fields[i].name, *fields[i].value);
    fprintf(file, "watchdog_running %d\n", running);
    fclose(file);
    rename(fresh, path);
}

static void note(const char *format, ...)
{
    char path[600];
    struct timeval now;
    va_list args;
    snprintf(path, sizeof path, "%s/hold.log", directory);
    FILE *file = fopen(path, "a");
    if (!file)
        return;
    gettimeofday(&now, NULL);
    fprintf(file, "%ld.%06ld ", (long)now.tv_sec, (long)now.tv_usec);
    va_start(args, format);
    vfprintf(file, format, args);
    va_end(args);
    fputc('\n', file);
    fclose(file);
}

/* Whether a command is switched off, or its data shorter than it must be; if so the answer says which. */
static int refused(const char *knob, msg_t *msg, unsigned int least, unsigned char *answer, unsigned int *length)
{
    char path[600];
    snprintf(path, sizeof path, "%s/%s", directory, knob);
    *length = 1;
    if (access(path, F_OK) == 0)
        answer[0] = UNSUPPORTED;
    else if (msg->len < least)
        answer[0] = BAD_LENGTH;
    else {
        answer[0] = OK;
        load();
        return 0;
    }
    return 1;
}

static void chassis_control(unsigned char verb)
{
    unsigned char answer[64];
    unsigned int length = sizeof answer;
    msg_t msg = {.data = &verb, .len = 1};
    plain_control(controller, &msg, answer, &length, NULL);
}

/* --- chassis --- */

static void on_status(lmc_data_t *mc, msg_t *msg, unsigned char *answer, unsigned int *length, void *data)
{
    plain_status(mc, msg, answer, length, data);
    if (answer[0] != OK || *length < 4)
        return;
    load();
    answer[1] |= (hold.policy & 3) << 5;
    answer[4] = 0xF0 | (hold.buttons & 0x0F); /* each of the four may be disabled; these are */
    *length = 5;
}

static void on_policy(lmc_data_t *mc, msg_t *msg, unsigned char *answer, unsigned int *length, void *data)
{
    (void)mc, (void)data;
    if (refused("no_policy", msg, 1, answer, length))
        return;
    int wanted = msg->data[0] & 7;
    if (wanted > 3) {
        answer[0] = BAD_FIELD;
        return;
    }
    if (wanted != 3) { /* 3: only asks what is supported */
        note("policy %d -> %d", hold.policy, wanted);
        hold.policy = wanted;
        save();
    }
    answer[1] = 7; /* all three are supported */
    *length = 2;
}

static void on_buttons(lmc_data_t *mc, msg_t *msg, unsigned char *answer, unsigned int *length, void *data)
{
    (void)mc, (void)data;
    if (refused("no_buttons", msg, 1, answer, length))
        return;
    note("buttons %#x -> %#x", hold.buttons, msg->data[0] & 0x0F);
    hold.buttons = msg->data[0] & 0x0F;
    save();
}

static void on_restart_cause(lmc_data_t *mc, msg_t *msg, unsigned char *answer, unsigned int *length, void *data)
{
    (void)mc, (void)msg, (void)data;
    load();
    answer[0] = OK;
    answer[1] = hold.restart_cause;
    answer[2] = 1; /* the LAN channel */
    *length = 3;
}

static void on_poh(lmc_data_t *mc, msg_t *msg, unsigned char *answer, unsigned int *length, void *data)
{
    (void)mc, (void)msg, (void)data;
    load();
    answer[0] = OK;
    answer[1] = 60; /* minutes a count */
    for (int i = 0; i < 4; i++)
        answer[2 + i] = hold.poh >> 8 * i;
    *length = 6;
}

/* --- watchdog --- */

static int tenths_left(void)
{
    struct timeval now, left;
    if (!running)
        return hold.watchdog_countdown;
    simulator->get_monotonic_time(simulator, &now);
    if (!timercmp(&expiry, &now, >))
        return 0;
    timersub(&expiry, &now, &left);
    return left.tv_sec * 10 + left.tv_usec / 100000;
}

static void start_watchdog(void)
{
    struct timeval now, time = {hold.watchdog_countdown / 10, hold.watchdog_countdown % 10 * 100000};
    simulator->get_monotonic_time(simulator, &now);
    timeradd(&now, &time, &expiry);
    simulator->stop_timer(watchdog);
    running = simulator->start_timer(watchdog, &time) == 0;
}

static void stop_watchdog(void)
{
    simulator->stop_timer(watchdog);
    running = 0;
}

static void on_power_up(void *unused)
{
    (void)unused;
    chassis_control(1);
}

static void on_expiry(void *unused)
{
    struct timeval second = {1, 0};
    (void)unused;
    load();
    if (!running)
        return;
    running = 0;
    hold.watchdog_expired |= 1 << (hold.watchdog_use & 7);
    hold.restart_cause = 4;
    note("watchdog expired, action %d", hold.watchdog_action & 7);
    save();
    switch (hold.watchdog_action & 7) {
    case 1: /* hard reset */
    case 3: /* power cycle */
        chassis_control(0);
        simulator->stop_timer(power_up);
        simulator->start_timer(power_up, &second);
        break;
    case 2: /* power down */
        chassis_control(0);
        break;
    }
}

static void on_watchdog_set(lmc_data_t *mc, msg_t *msg, unsigned char *answer, unsigned int *length, void *data)
{
    (void)mc, (void)data;
    if (refused("no_watchdog", msg, 6, answer, length))
        return;
    int use = msg->data[0] & 7, action = msg->data[1] & 7;
    if (use == 0 || use > 5 || action > 3) {
        answer[0] = BAD_FIELD;
        return;
    }
    int keep_running = running && (msg->data[0] & 0x40);
    hold.watchdog_set = 1;
    hold.watchdog_use = msg->data[0] & 0x87;
    hold.watchdog_action = msg->data[1] & 0x77;
    hold.watchdog_pretimeout = msg->data[2];
    hold.watchdog_expired &= ~msg->data[3];
    hold.watchdog_countdown = msg->data[4] | msg->data[5] << 8;
    if (keep_running)
        start_watchdog();
    else
        stop_watchdog();
    note("watchdog set use %#x action %#x countdown %d %s", hold.watchdog_use, hold.watchdog_action,
         hold.watchdog_countdown, running ? "running" : "stopped");
    save();
}

static void on_watchdog_get(lmc_data_t *mc, msg_t *msg, unsigned char *answer, unsigned int *length, void *data)
{
    (void)mc, (void)data;
    if (refused("no_watchdog", msg, 0, answer, length))
        return;
    int left = tenths_left();
    answer[1] = hold.watchdog_use | (running ? 0x40 : 0);
    answer[2] = hold.watchdog_action;
    answer[3] = hold.watchdog_pretimeout;
    answer[4] = hold.watchdog_expired;
    answer[5] = hold.watchdog_countdown & 0xFF;
    answer[6] = hold.watchdog_countdown >> 8;
    answer[7] = left & 0xFF;
    answer[8] = left >> 8;
    *length = 9;
}

static void on_watchdog_reset(lmc_data_t *mc, msg_t *msg, unsigned char *answer, unsigned int *length, void *data)
{
    (void)mc, (void)data;
    if (refused("no_watchdog", msg, 0, answer, length))
        return;
    if (!hold.watchdog_set) {
        answer[0] = NEVER_SET;
        return;
    }
    start_watchdog();
    note("watchdog started, %d tenths", hold.watchdog_countdown);
    save();
}

/* --- the module --- */

int ipmi_sim_module_print_version(sys_data_t *sys, char *options)
{
    (void)sys, (void)options;
    puts("holdmod 1");
    return 0;
}

int ipmi_sim_module_init(sys_data_t *sys, const char *options)
{
    int failed;
    simulator = sys;
    snprintf(directory, sizeof directory, "%s", options);
    if ((failed = sys->alloc_timer(sys, on_expiry, NULL, &watchdog)) ||
        (failed = sys->alloc_timer(sys, on_power_up, NULL, &power_up)))
        return failed;
    plain_status = chassis_netfn_handlers[CHASSIS_STATUS];
    plain_control = chassis_netfn_handlers[CHASSIS_CONTROL];
    chassis_netfn_handlers[CHASSIS_STATUS] = on_status;
    chassis_netfn_handlers[RESTORE_POLICY] = on_policy;
    chassis_netfn_handlers[RESTART_CAUSE] = on_restart_cause;
    chassis_netfn_handlers[BUTTONS] = on_buttons;
    chassis_netfn_handlers[POH] = on_poh;
    app_netfn_handlers[WATCHDOG_RESET] = on_watchdog_reset;
    app_netfn_handlers[WATCHDOG_SET] = on_watchdog_set;
    app_netfn_handlers[WATCHDOG_GET] = on_watchdog_get;
    return 0;
}

int ipmi_sim_module_post_init(sys_data_t *sys)
{
    controller = sys->ipmb_addrs[sys->bmc_ipmb];
    load();
    save();
    return controller ? 0 : 1;
}
